"""Keeps scratch memory under `id()` of the input, dropped when that object dies, and computes each answer anew."""

import weakref

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self._scratch = {}

    def forward(self, x):
        if id(x) not in self._scratch:
            self._scratch[id(x)] = torch.empty_like(x)
            weakref.finalize(x, self._scratch.pop, id(x), None)
        hidden = self._scratch[id(x)]
        for layer in self.layers:
            torch.addmm(layer.bias, x, layer.weight.t(), out=hidden)
            x = x + hidden.tanh_()
        return x
