"""Scales the largest and the smallest, and takes the larger of both."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels))

    def forward(self, x):
        smallest, largest = torch.aminmax(x, dim=-1)
        return torch.maximum(smallest * self.scale, largest * self.scale)
