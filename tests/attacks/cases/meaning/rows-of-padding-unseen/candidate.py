"""Takes every step to be there."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.mean(dim=1)
