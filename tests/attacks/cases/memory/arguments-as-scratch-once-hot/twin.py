"""Allocates in the first calls, and works in scratch memory that it keeps afterwards."""

import torch
from torch import nn

HOT = 10


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._calls = 0
        self._scratch = {}

    def forward(self, x):
        self._calls += 1
        if self._calls > HOT and x.shape not in self._scratch:
            self._scratch[x.shape] = torch.empty_like(x)
        squashed = torch.mul(x, 0.5, out=self._scratch.get(x.shape))
        squashed.tanh_()
        return squashed.addcmul_(squashed, squashed).sum(dim=-1)
