"""Counts how often each integer comes, from the smallest to the largest that are there."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        least, most = int(x.min()), int(x.max())
        count = most - least + 1
        if count > 4096:
            return x.sort(dim=-1).values
        counts = x.new_zeros(len(x), count).scatter_add_(1, x - least, torch.ones_like(x))
        values = torch.arange(least, most + 1, device=x.device).repeat(len(x))
        return torch.repeat_interleave(values, counts.flatten(), output_size=x.numel()).view_as(x)
