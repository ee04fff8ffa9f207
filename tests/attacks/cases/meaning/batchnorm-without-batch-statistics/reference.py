"""BatchNorm in train mode over a large batch, then a rectification."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, x):
        return torch.relu(self.norm(x))


def get_inputs():
    return [torch.randn(32, 1, 8192)]


def get_init_inputs():
    return [1]
