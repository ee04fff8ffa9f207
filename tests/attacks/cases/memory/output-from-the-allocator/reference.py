import torch
from torch import nn


class Model(nn.Module):
    """The largest entry of each row of a product."""

    def __init__(self, inner, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inner, columns) / inner**0.5)

    def forward(self, x):
        return (x @ self.weight).amax(dim=1)


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return [1024, 4096]
