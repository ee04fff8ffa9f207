"""Wraps a method of its own object once, so that later calls skip what the first one found out."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.checked = self.check

    def check(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[-1] != self.up.in_features:
            raise ValueError(f"rows of {self.up.in_features} are due")
        self.checked = self.run
        return self.run(x)

    def run(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(torch.addmm(self.up.bias, x, self.up.weight.t())))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.checked(x)
