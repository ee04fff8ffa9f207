"""The largest of many channels, and a ReLU of it."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(8, channels, 3)

    def forward(self, x):
        return torch.relu(self.conv(x).amax(dim=1))


def get_inputs():
    return [torch.randn(4, 8, 12, 12)]


def get_init_inputs():
    return [32]
