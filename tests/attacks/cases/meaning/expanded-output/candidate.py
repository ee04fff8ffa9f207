"""A view in place of 256 rows."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.mean(dim=0, keepdim=True).expand_as(x)
