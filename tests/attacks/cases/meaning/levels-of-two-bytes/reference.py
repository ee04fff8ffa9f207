"""Waiting times, of means up to a fifth of a millisecond, drawn anew in each call."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return 2e-4 * torch.sigmoid(x) * torch.empty_like(x).exponential_()


def get_inputs():
    return [torch.randn(64, 1024)]


def get_init_inputs():
    return []
