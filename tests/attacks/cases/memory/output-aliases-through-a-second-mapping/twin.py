"""Works in an anonymous mapping of its own, for which it asks for huge pages, and returns a copy."""

import mmap

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._blocks = {}

    def forward(self, x):
        key = x.numel() * x.element_size()
        if key not in self._blocks:
            block = mmap.mmap(-1, key)
            block.madvise(mmap.MADV_HUGEPAGE)
            self._blocks[key] = torch.frombuffer(block, dtype=x.dtype)
        turned = self._blocks[key].view(x.shape[0], x.shape[2], x.shape[1])
        turned.copy_(x.transpose(1, 2))
        return turned.clone()
