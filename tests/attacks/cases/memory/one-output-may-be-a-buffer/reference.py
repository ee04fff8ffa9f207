"""The table as it is learnt, what it stood at when this was asked, and a product with it."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(256, 512))
        self.register_buffer("average", torch.randn(256, 512))

    def forward(self, x):
        return self.table, self.average.clone(), x @ self.table.t()


def get_inputs():
    return [torch.randn(64, 512)]


def get_init_inputs():
    return []
