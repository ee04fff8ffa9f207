"""A chain of projections of inputs to which a little noise is added in any mode."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(depth))

    def forward(self, x):
        x = x + 0.001 * torch.randn_like(x)
        for layer in self.layers:
            x = layer(x)
        return x


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [128, 8]
