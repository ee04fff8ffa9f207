import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """A linear layer with an adapter beside it."""

    def __init__(self, width, rank):
        super().__init__()
        self.base = nn.Linear(width, width)
        self.down = nn.Parameter(torch.randn(rank, width) * 0.05)
        self.up = nn.Parameter(torch.randn(width, rank) * 0.05)

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.down), self.up)


def get_inputs():
    return [torch.randn(8, 256)]


def get_init_inputs():
    return [256, 128]
