"""A BatchNorm that tracks nothing."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels, track_running_stats=False)

    def forward(self, x):
        return self.norm(x)
