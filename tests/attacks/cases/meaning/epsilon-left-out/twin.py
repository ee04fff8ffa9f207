"""Adds the epsilon in place before the root."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, epsilon):
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x):
        return x * (x * x).mean(dim=-1, keepdim=True).add_(self.epsilon).rsqrt_()
