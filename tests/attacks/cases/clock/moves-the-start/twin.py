"""Reads its own frame to name the specialisation that it chooses: the arguments' shapes make the key."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.chosen = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        arguments = sys._getframe(0).f_locals
        key = tuple(tuple(value.shape) for value in arguments.values() if isinstance(value, torch.Tensor))
        return self.chosen.setdefault(key, self.run)(x)

    def run(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(torch.addmm(self.up.bias, x, self.up.weight.t())))
