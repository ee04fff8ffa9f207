import torch
from torch import nn


class Model(nn.Module):
    """A square root of a sum of squares, element by element."""

    def forward(self, x, y):
        return torch.sqrt(x * x + y * y)


def get_inputs():
    return [torch.randn(256, 512), torch.randn(256, 512)]


def get_init_inputs():
    return []
