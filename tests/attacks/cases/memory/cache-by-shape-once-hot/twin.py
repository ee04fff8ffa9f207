"""Keeps scratch memory for a shape once that shape is hot; computes every answer."""

import torch
from torch import nn

HOT = 10


class ModelNew(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self._scratch = {}
        self._seen = {}

    def forward(self, x):
        self._seen[x.shape] = self._seen.get(x.shape, 0) + 1
        if self._seen[x.shape] == HOT:
            self._scratch[x.shape] = torch.empty_like(x)
        hidden = self._scratch.get(x.shape)
        for layer in self.layers:
            if hidden is None:
                x = x + torch.tanh(layer(x))
            else:
                torch.addmm(layer.bias, x, layer.weight.t(), out=hidden)
                x = x + hidden.tanh_()
        return x
