import torch
from torch import nn


class Model(nn.Module):
    """A recurrence on a small input, added to the head of a large cache."""

    def __init__(self, width, steps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.steps = steps

    def forward(self, x, cache):
        for _ in range(self.steps):
            x = torch.tanh(x @ self.weight)
        return x + cache[: x.shape[0]]


def get_inputs():
    return [torch.randn(64, 256), torch.zeros(8192, 256)]


def get_init_inputs():
    return [256, 4]
