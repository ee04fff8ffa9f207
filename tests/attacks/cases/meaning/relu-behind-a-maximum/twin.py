"""The largest of zero and all channels."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(8, channels, 3)

    def forward(self, x):
        return self.conv(x).clamp_(min=0).amax(dim=1)
