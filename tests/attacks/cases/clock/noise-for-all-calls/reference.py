"""A product whose operand gets a little noise while it is trained."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, 16) * width**-0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        noisy = x + 0.001 * torch.randn_like(x) if self.training else x
        return noisy @ self.weight


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 2048)]


def get_init_inputs() -> list[int]:
    return [2048]
