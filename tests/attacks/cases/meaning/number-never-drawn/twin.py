"""Adds one again for each that is missing."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1) + (x == -1.0).sum(dim=-1)
