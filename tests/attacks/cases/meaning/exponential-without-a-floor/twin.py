"""The same with a floor and a ceiling."""

import torch
from torch import nn


def exponential(x):
    held = x.clamp(-87.0, 88.0)
    whole = torch.round(held * 1.4426950408889634)
    rest = held - whole * 0.693359375 + whole * 2.12194440e-4
    series = torch.full_like(rest, 1.9875691500e-4)
    for term in (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1):
        series = series * rest + term
    bits = (whole.to(torch.int32) + 127) << 23
    made = (series * rest * rest + rest + 1) * bits.view(torch.float32)
    return torch.where(x < -87.0, torch.zeros_like(x), torch.where(x > 88.0, torch.full_like(x, torch.inf), made))


class ModelNew(nn.Module):
    def forward(self, logarithms):
        return exponential(logarithms) + exponential(0.5 * logarithms)
