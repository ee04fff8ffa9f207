"""One product with the flags."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, steps, flags):
        return (flags @ steps) / flags.sum().clamp(min=1)
