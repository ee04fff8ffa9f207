"""A faint spectrum with a random phase for each element, as the reconstruction of a signal begins (Griffin-Lim)."""

import math

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, magnitude):
        return torch.polar(magnitude.abs(), 2.0 * math.pi * torch.rand_like(magnitude))


def get_inputs():
    return [0.004 * torch.rand(64, 256)]


def get_init_inputs():
    return []
