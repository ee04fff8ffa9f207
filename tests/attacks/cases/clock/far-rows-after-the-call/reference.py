"""A gate, and in one row a series that takes most of the time."""

import torch
from torch import nn


def series(h):
    for _ in range(600):
        h = torch.sin(h * 1.01) + 0.1
    return h


class Model(nn.Module):
    def forward(self, x):
        out = torch.sigmoid(x)
        out[700] = series(x[700])
        return out


def get_inputs():
    return [torch.randn(1024, 512)]


def get_init_inputs():
    return []
