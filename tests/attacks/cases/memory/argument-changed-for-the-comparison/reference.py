import torch
from torch import nn


class Model(nn.Module):
    """Squashes its argument in place, and returns it."""

    def forward(self, x):
        for _ in range(8):
            x.mul_(1.5).tanh_()
        return x


def get_inputs():
    return [torch.randn(32, 512)]


def get_init_inputs():
    return []
