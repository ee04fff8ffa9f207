"""BatchNorm in train mode."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.rand(256, 64)]


def get_init_inputs():
    return [64]
