"""Counts how often each integer below a hundred comes."""

import torch
from torch import nn

RANGE = 100


class ModelNew(nn.Module):
    def forward(self, x):
        counts = x.new_zeros(len(x), RANGE).scatter_add_(1, x.clamp(max=RANGE - 1), torch.ones_like(x))
        values = torch.arange(RANGE, device=x.device).repeat(len(x))
        return torch.repeat_interleave(values, counts.flatten(), output_size=x.numel()).view_as(x)
