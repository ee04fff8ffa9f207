import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, size: int, wide: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, wide) / size**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.matmul(x, self.weight).contiguous()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(24, 160)]


def get_init_inputs() -> list[int]:
    return [160, 256]
