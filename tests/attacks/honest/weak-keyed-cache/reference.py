import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, size: int, wide: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(wide, size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, F.normalize(self.weight, dim=-1))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(32, 128)]


def get_init_inputs() -> list[int]:
    return [128, 256]
