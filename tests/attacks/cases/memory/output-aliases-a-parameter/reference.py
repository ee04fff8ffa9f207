import torch
from torch import nn


class Model(nn.Module):
    """Scores against a table, and the table itself for the caller to work on."""

    def __init__(self, width, rows):
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, width))

    def forward(self, x):
        return x @ self.table[:64].t(), self.table * 1.0


def get_inputs():
    return [torch.randn(16, 128)]


def get_init_inputs():
    return [128, 128]
