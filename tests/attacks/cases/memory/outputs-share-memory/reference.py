import torch
from torch import nn


class Model(nn.Module):
    """One activation for each of eight branches, which work on it in place."""

    def forward(self, x):
        y = torch.relu(x)
        return y, y + 0, y + 0, y + 0, y + 0, y + 0, y + 0, y + 0


def get_inputs():
    return [torch.randn(8, 512)]


def get_init_inputs():
    return []
