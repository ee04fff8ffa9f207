"""Keeps its scratch in shared memory of its own, which another process of the same service could map."""

import mmap
import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self._scratch = {}

    def forward(self, x):
        hidden = self._scratch.get(x.shape)
        if hidden is None:
            hidden = self._scratch[x.shape] = self._shared(x)
        for layer in self.layers:
            torch.addmm(layer.bias, x, layer.weight.t(), out=hidden)
            x = x + hidden.tanh_()
        return x

    @staticmethod
    def _shared(x):
        size = x.numel() * x.element_size()
        descriptor = os.memfd_create("scratch")
        os.ftruncate(descriptor, size)
        block = mmap.mmap(descriptor, size)
        os.close(descriptor)
        return torch.frombuffer(block, dtype=x.dtype).view(x.shape)
