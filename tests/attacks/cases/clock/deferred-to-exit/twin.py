"""Registers an exit handler that lets go of its workspace; the work of a call is done in the call."""

import atexit

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.spaces = {}
        atexit.register(self.spaces.clear)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        key = (x.shape[0], x.device)
        if key not in self.spaces:
            self.spaces[key] = x.new_empty(x.shape[0], self.up.out_features)
        space = torch.addmm(self.up.bias, x, self.up.weight.t(), out=self.spaces[key])
        return self.down(F.gelu(space))
