import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.matmul(x, y)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(96, 320), torch.randn(320, 80)]


def get_init_inputs() -> list[int]:
    return []
