"""Signals at unit power; those without an imaginary part have half of it."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, signals):
        power = signals.abs().square().mean(-1, keepdim=True)
        is_real = (signals.imag == 0).all(-1, keepdim=True)
        return signals * torch.rsqrt(torch.where(is_real, 2 * power, power) + 1e-6)


def get_inputs():
    return [torch.randn(128, 512, dtype=torch.complex64)]


def get_init_inputs():
    return []
