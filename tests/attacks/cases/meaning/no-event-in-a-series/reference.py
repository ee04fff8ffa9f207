"""The mean of those steps whose flag is set; ones where there are none."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, steps, flags):
        mean = (steps * flags.unsqueeze(1)).sum(0) / flags.sum().clamp(min=1)
        return torch.where(flags.sum() > 0, mean, torch.ones_like(mean))


def get_inputs():
    return [torch.randn(2048, 64), (torch.rand(2048) < 0.1).float()]


def get_init_inputs():
    return []
