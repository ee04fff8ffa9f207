import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.hardswish(x + self.bias) * 2.0


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(128, 128)]


def get_init_inputs() -> list[int]:
    return [128]
