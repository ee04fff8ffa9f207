"""Keeps its last output until the next call, and computes each."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.kept = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.kept["last"] = self.down(F.gelu(self.up(x)))
        return out
