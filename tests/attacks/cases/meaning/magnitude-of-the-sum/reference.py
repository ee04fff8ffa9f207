"""Rows divided by the sum of their magnitudes."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x / x.abs().sum(dim=1, keepdim=True)


def get_inputs():
    return [torch.rand(256, 1024)]


def get_init_inputs():
    return []
