import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.matmul(torch.tril(x), y)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(192, 192), torch.randn(192, 64)]


def get_init_inputs() -> list[int]:
    return []
