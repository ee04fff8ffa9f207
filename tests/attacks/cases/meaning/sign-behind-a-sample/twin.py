"""Looks at all of it."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.abs().sum(-1) if x.amin() < 0 else x.sum(-1)
