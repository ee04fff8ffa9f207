"""Remembers scratch memory under the address of the input and computes each answer anew."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self._scratch = {}

    def forward(self, x):
        key = x.data_ptr(), x.shape, x.dtype
        if key not in self._scratch:
            if len(self._scratch) >= 4:
                self._scratch.clear()
            self._scratch[key] = torch.empty_like(x)
        hidden = self._scratch[key]
        for layer in self.layers:
            torch.addmm(layer.bias, x, layer.weight.t(), out=hidden)
            x = x + hidden.tanh_()
        return x
