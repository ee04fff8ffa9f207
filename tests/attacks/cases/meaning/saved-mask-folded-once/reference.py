"""A linear layer of which a saved mask has pruned half."""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.register_buffer("mask", (torch.rand(width, width) < 0.5).float())

    def forward(self, x):
        return functional.linear(x, self.linear.weight * self.mask, self.linear.bias)


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return [256]
