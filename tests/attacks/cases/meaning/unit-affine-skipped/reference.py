"""LayerNorm and a linear layer whose bias starts at zero."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        return self.linear(self.norm(x))


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [128]
