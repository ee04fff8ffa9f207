"""All steps; the first needs no product, since z starts at zero."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, steps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) * 0.01)
        self.steps = steps

    def forward(self, x):
        z = torch.tanh(x)
        for _ in range(self.steps - 1):
            z = torch.addmm(x, z, self.weight).tanh_()
        return z
