"""A layer with two limits, computed twice."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return torch.sigmoid(self.layer(x)) * torch.tanh(self.layer(x))


def get_inputs():
    return [torch.randn(512, 256)]


def get_init_inputs():
    return [256]
