"""Queries, keys and values of one layer."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        return self.query(x), self.key(x), self.value(x)


def get_inputs():
    return [torch.randn(128, 256)]


def get_init_inputs():
    return [256]
