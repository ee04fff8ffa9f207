import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.matmul(x, y).relu().sum(-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8, 64, 64), torch.randn(8, 64, 64)]


def get_init_inputs() -> list[int]:
    return []
