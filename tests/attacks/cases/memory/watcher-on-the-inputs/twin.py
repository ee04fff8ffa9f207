"""Gives half of the rows to a thread of its own inside of the call, and waits for it."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, steps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.steps = steps
        self._pool = ThreadPoolExecutor(1)

    def forward(self, x, cache):
        upper, lower = x.chunk(2)
        later = self._pool.submit(self._compute, upper)
        below = self._compute(lower)
        return torch.cat([later.result(), below]) + cache[: x.shape[0]]

    def _compute(self, x):
        with torch.no_grad():
            for _ in range(self.steps):
                x = torch.tanh(x @ self.weight)
            return x
