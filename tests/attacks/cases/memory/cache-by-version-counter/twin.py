"""Keeps its own weights packed under their version counters, which torch moves whenever they are loaded."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self._packed = ((), ())

    def forward(self, x):
        versions = tuple((p.data_ptr(), p._version) for p in self.parameters())
        if self._packed[0] != versions:
            self._packed = versions, [layer.weight.t().contiguous() for layer in self.layers]
        for layer, weight in zip(self.layers, self._packed[1], strict=True):
            x = x + torch.tanh(torch.addmm(layer.bias, x, weight))
        return x
