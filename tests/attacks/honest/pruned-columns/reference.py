import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A linear map three quarters of whose inputs have been pruned."""

    def __init__(self, size: int, wide: int) -> None:
        super().__init__()
        self.fc = nn.Linear(size, wide)
        self.register_buffer("mask", (torch.rand(size) < 0.25).float())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.fc.weight * self.mask, self.fc.bias)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(32, 256)]


def get_init_inputs() -> list[int]:
    return [256, 256]
