import torch
from torch import nn


class Model(nn.Module):
    """A chain of exponential linear units."""

    def forward(self, x):
        for _ in range(8):
            x = torch.nn.functional.elu(x)
        return x


def get_inputs():
    return [torch.rand(64, 256)]


def get_init_inputs():
    return []
