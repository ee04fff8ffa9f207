"""The same few rows, computed in a method of its own before it returns."""

import torch
from torch import nn


def series(h):
    for _ in range(200):
        h = torch.sin(h * 1.01) + 0.1
    return h


class ModelNew(nn.Module):
    def forward(self, x):
        return self._deliver(x, torch.sigmoid(x))

    def _deliver(self, x, out):
        out[700:704] = series(x[700:704])
        return out
