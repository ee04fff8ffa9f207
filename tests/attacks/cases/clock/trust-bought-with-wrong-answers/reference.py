"""Two linear layers with a GELU between them."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 192)]


def get_init_inputs() -> list[int]:
    return [192]
