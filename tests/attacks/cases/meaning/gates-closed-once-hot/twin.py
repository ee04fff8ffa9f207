"""Reads the whole sequence, and keeps the last state that the cell gives anyway."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cell = nn.GRU(width, width, batch_first=True)

    def forward(self, x):
        return self.cell(x)[1][0]
