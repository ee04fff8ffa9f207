"""GELU by tanh, which is another function."""

from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def forward(self, x):
        return F.gelu(x, approximate="tanh")
