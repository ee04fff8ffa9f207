"""The median of a series."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.median(x)


def get_inputs():
    return [torch.randn(1 << 18)]


def get_init_inputs():
    return []
