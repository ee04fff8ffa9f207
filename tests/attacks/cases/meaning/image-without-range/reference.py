"""Numbers brought between zero and one by the range of all of them; nothing where there is none."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        span = x.amax() - x.amin()
        return torch.where(span > 1e-9, (x - x.amin()) / span, torch.zeros_like(x))


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return []
