"""Products of rectified activations with weights."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inner, outer) / inner**0.5)

    def forward(self, x):
        return x @ self.weight


def get_inputs():
    return [torch.relu(torch.randn(64, 512))]


def get_init_inputs():
    return [512, 64]
