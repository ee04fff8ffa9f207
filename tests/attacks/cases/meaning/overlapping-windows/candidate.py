"""Copies the rows, not the windows. Strides say the rest."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        return x.clone().unfold(1, self.size, 1)
