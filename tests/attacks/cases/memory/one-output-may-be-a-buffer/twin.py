"""Copies the average into memory of its own."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(256, 512))
        self.register_buffer("average", torch.randn(256, 512))

    def forward(self, x):
        return self.table, torch.empty_like(self.average).copy_(self.average), torch.mm(x, self.table.t())
