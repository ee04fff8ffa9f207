"""A product over as many terms as there are weights that are not pruned."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width))

    def forward(self, x):
        return x @ self.weight / (self.weight != 0).sum(0).clamp_min(1)


def get_inputs():
    return [torch.randn(8, 256)]


def get_init_inputs():
    return [256]
