import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, size) / size**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.matmul(x, self.weight)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 256)]


def get_init_inputs() -> list[int]:
    return [256]
