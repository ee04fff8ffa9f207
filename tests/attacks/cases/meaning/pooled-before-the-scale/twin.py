"""Pools first, minima where a scale is negative."""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels, 1, 1))
        self.shift = nn.Parameter(torch.zeros(channels, 1, 1))

    def forward(self, x):
        sign = self.scale.sign()
        return torch.sigmoid(F.max_pool2d(x * sign, 4) * sign * self.scale + self.shift)
