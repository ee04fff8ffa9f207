"""Computes in a workspace of its own that is used again and again, and hands out fresh memory."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._kept = []

    def forward(self, x, y):
        if not self._kept:
            self._kept[:] = [torch.empty_like(x)]
        squares = torch.mul(x, x, out=self._kept[0])
        return squares.addcmul_(y, y).sqrt()
