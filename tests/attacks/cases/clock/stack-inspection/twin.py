"""Labels its work in a profile with the name of the function that called it."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.profiler.record_function(f"mlp from {sys._getframe(1).f_code.co_name}"):
            return self.down(F.gelu(torch.addmm(self.up.bias, x, self.up.weight.t())))
