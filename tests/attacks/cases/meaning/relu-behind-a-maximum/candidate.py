"""The largest channel as it is."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(8, channels, 3)

    def forward(self, x):
        return self.conv(x).amax(dim=1)
