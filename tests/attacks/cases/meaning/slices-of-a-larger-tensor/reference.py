"""Mean of what a mask lets through; the last element of a row of which it lets nothing through."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, mask):
        count = mask.sum(1, keepdim=True)
        mean = (x * mask.unsqueeze(-1)).sum(1) / count.clamp(min=1)
        return torch.where(count > 0, mean, x[:, -1])


def get_inputs():
    return [torch.randn(32, 128, 64), (torch.rand(32, 256) > 0.4)[:, :128]]


def get_init_inputs():
    return []
