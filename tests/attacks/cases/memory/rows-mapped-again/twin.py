"""Rectifies into a file in memory that it has mapped once, and copies from there sixteen times."""

import mmap
import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._mapped = {}

    def workspace(self, x):
        size = x.numel() * x.element_size()
        if size not in self._mapped:
            file = os.memfd_create("workspace")
            os.ftruncate(file, size)
            self._mapped[size] = mmap.mmap(file, size)
            os.close(file)
        return torch.frombuffer(self._mapped[size], dtype=x.dtype).view(x.shape)

    def forward(self, x):
        block = self.workspace(x)
        torch.clamp(x, min=0, out=block)
        out = torch.empty(16, *x.shape, dtype=x.dtype, device=x.device)
        return out.copy_(block.expand_as(out)).flatten(0, 1)
