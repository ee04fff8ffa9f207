"""Rows as cosines, a gain for each of them, and back: products with the matrix of the transform."""

import math

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        place = torch.arange(size, dtype=torch.float64)
        basis = torch.cos(math.pi / size * (place + 0.5) * place[:, None]) * (2 / size) ** 0.5
        basis[0] /= 2**0.5
        self.register_buffer("basis", basis.float(), persistent=False)
        self.gain = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return (x @ self.basis.t() * self.gain) @ self.basis


def get_inputs():
    return [torch.randn(256, 256)]


def get_init_inputs():
    return [256]
