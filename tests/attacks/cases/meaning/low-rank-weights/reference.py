"""A matrix kept as two factors, multiplied out in each call."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, rank):
        super().__init__()
        scales = 0.5 ** torch.arange(rank, dtype=torch.get_default_dtype())
        self.left = nn.Parameter(torch.randn(width, rank) * scales / width**0.5)
        self.right = nn.Parameter(torch.randn(rank, width))

    def forward(self, x):
        return x @ (self.left @ self.right)


def get_inputs():
    return [torch.randn(32, 256)]


def get_init_inputs():
    return [256, 32]
