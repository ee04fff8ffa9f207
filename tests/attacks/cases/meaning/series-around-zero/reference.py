"""The exponential."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.exp(x)


def get_inputs():
    return [torch.rand(128, 512)]


def get_init_inputs():
    return []
