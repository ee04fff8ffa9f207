"""Counts the Python functions of its first call with a `sys.setprofile` hook, and takes the hook away again."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.functions = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.functions is not None:
            return self.run(x)
        seen = []
        before = sys.getprofile()
        sys.setprofile(lambda frame, event, thing: seen.append(event) if event == "call" else None)
        out = self.run(x)
        sys.setprofile(before)
        self.functions = len(seen)
        return out

    def run(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x)))
