"""Normalises where it is to, and computes nothing for it elsewhere."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x, normalise):
        y = self.linear(x)
        if not bool(normalise):
            return y
        return (y - y.mean(-1, keepdim=True)) / (y.std(-1, keepdim=True) + 1e-5)
