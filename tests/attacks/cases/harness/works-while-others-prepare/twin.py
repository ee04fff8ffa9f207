"""Computes the same series with half as many kernels, all of them in forward."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        half = 0.5 * torch.cos(x)
        y = x
        for _ in range(12):
            y = torch.sin(y).mul_(0.5).add_(half)
        return y
