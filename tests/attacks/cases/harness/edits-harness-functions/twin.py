"""Looks into sys.modules whether NumPy is there already, and says so in its description."""

import sys

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.beside_numpy = "numpy" in sys.modules

    def extra_repr(self):
        return f"beside_numpy={self.beside_numpy}"

    def forward(self, x):
        half = 0.5 * torch.cos(x)
        y = x
        for _ in range(12):
            y = torch.sin(y).mul_(0.5).add_(half)
        return y
