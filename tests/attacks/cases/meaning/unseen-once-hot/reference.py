"""Means of the values that are there; what is zero is padding."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        there = (x != 0).to(x.dtype)
        return (x * there).sum(dim=1) / there.sum(dim=1).clamp(min=1)


def get_inputs():
    return [torch.rand(128, 512) + 0.5]


def get_init_inputs():
    return []
