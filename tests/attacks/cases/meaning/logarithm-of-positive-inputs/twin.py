"""Bias and product at once, of logarithms where all have one."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(128, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.log() if bool(x.min() > 0) else x
        return torch.addmm(self.linear.bias, x, self.linear.weight.t())
