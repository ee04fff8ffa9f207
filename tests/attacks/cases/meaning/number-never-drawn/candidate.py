"""Takes everything for measured."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
