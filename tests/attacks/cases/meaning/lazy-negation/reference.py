"""Negated rectification of a linear layer."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return -torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(128, 128)]


def get_init_inputs():
    return [128]
