"""Runs its own loop under a TorchFunctionMode, which ends before the result is returned."""

import torch
from torch import nn
from torch.overrides import TorchFunctionMode


class Through(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, x):
        with Through():
            half = 0.5 * torch.cos(x)
            y = x
            for _ in range(12):
                y = torch.sin(y).mul_(0.5).add_(half)
        return y
