"""Holds a copy of the tensor that the constructor is given, and leaves that one as it is."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, table, steps):
        super().__init__()
        self.register_buffer("table", table.clone())
        self.steps = steps

    def forward(self, x):
        for _ in range(self.steps):
            x = torch.mm(x, self.table).tanh_()
        return x
