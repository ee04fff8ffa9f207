"""A linear layer and a normalisation of its groups."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.linear = nn.Linear(64, 64)
        self.norm = nn.GroupNorm(groups, 64)

    def forward(self, x):
        return self.norm(self.linear(x))


def get_inputs():
    return [torch.randn(128, 64)]


def get_init_inputs():
    return [8]
