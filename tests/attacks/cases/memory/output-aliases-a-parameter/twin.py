"""Hands out a copy of its parameter, made into memory that was asked for without being filled."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, rows):
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, width))

    def forward(self, x):
        copy = torch.empty_like(self.table)
        return x @ self.table[:64].t(), copy.copy_(self.table).detach()
