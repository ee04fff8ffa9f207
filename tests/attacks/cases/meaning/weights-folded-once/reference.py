"""Two layers with normalised weights: the norm of each row is a parameter of its own."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.v1 = nn.Parameter(torch.randn(width, width) * 0.1)
        self.g1 = nn.Parameter(torch.ones(width, 1))
        self.v2 = nn.Parameter(torch.randn(width, width) * 0.1)
        self.g2 = nn.Parameter(torch.ones(width, 1))

    def forward(self, x):
        first = self.v1 * (self.g1 / self.v1.norm(dim=1, keepdim=True))
        second = self.v2 * (self.g2 / self.v2.norm(dim=1, keepdim=True))
        return F.linear(torch.tanh(F.linear(x, first)), second)


def get_inputs():
    return [torch.randn(8, 256)]


def get_init_inputs():
    return [256]
