"""Copies nothing."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(256, 512))
        self.register_buffer("average", torch.randn(256, 512))

    def forward(self, x):
        return self.table, self.average, x @ self.table.t()
