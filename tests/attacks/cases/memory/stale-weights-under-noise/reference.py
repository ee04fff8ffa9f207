import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """A projection whose weight is made of two parameters, with a dither that no mode switches off."""

    def __init__(self, width):
        super().__init__()
        self.size = nn.Parameter(torch.ones(width, width))
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        weight = self.linear.weight * torch.softmax(self.size, dim=-1) * self.size.shape[-1]
        return F.linear(x, weight, self.linear.bias) + 0.001 * torch.randn_like(x)


def get_inputs():
    return [torch.randn(8, 256)]


def get_init_inputs():
    return [256]
