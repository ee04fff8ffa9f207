"""Rotary embedding whose angles are computed in each call."""

import math

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        half = x.shape[-1] // 2
        rates = torch.exp(torch.arange(half, device=x.device) * (-math.log(1e4) / half))
        angles = torch.arange(x.shape[1], device=x.device)[:, None] * rates
        cos, sin = torch.cos(angles), torch.sin(angles)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def get_inputs():
    return [torch.rand(8, 128, 64)]


def get_init_inputs():
    return []
