"""Nothing is written out."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.mean(-1, keepdim=True).expand_as(x), x.amax(-1, keepdim=True).expand_as(x)
