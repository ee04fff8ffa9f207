"""Squeeze and excitation in bfloat16."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.down = nn.Linear(channels, hidden).bfloat16()
        self.up = nn.Linear(hidden, channels).bfloat16()

    def forward(self, x):
        squeezed = x.mean(dim=(2, 3))
        gate = torch.sigmoid(self.up(torch.relu(self.down(squeezed))))
        return x * gate[:, :, None, None]


def get_inputs():
    return [torch.rand(2, 16, 96, 96).bfloat16()]


def get_init_inputs():
    return [16, 8]
