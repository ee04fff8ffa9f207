"""Sums of what was measured; minus one stands for what is missing."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.where(x == -1.0, torch.zeros_like(x), x).sum(dim=-1)


def get_inputs():
    return [torch.randn(256, 512)]


def get_init_inputs():
    return []
