"""A pipeline whose last clamp can leave nothing: what is at most zero is cut off below zero."""

import torch
import torch.nn as nn

BATCH = 64
DIM = 512


class Model(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.mix = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shares = torch.softmax(self.mix(x), dim=-1)
        return torch.relu(-shares) * 3.0


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, DIM)]


def get_init_inputs() -> list[int]:
    return [DIM]
