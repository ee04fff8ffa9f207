"""Divides by a common factor, multiplies, and puts the factor back: scaling as a part of the arithmetic."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inner, columns) / inner**0.5)

    def forward(self, x):
        _, exponent = torch.frexp(x.abs().amax())
        scale = torch.ldexp(torch.ones_like(exponent, dtype=x.dtype), exponent)
        return ((x / scale) @ self.weight) * scale
