"""Counts by a sum of signs without a sign."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width))

    def forward(self, x):
        return x @ self.weight / self.weight.sign().abs().sum(0).clamp_min(1)
