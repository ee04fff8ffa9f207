"""Divides by the deviation as it is."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.linear = nn.Linear(64, 64)
        self.norm = nn.GroupNorm(groups, 64)

    def forward(self, x):
        grouped = self.linear(x).view(len(x), self.norm.num_groups, -1)
        centred = grouped - grouped.mean(dim=-1, keepdim=True)
        scaled = centred * torch.rsqrt((centred * centred).mean(dim=-1, keepdim=True))
        return scaled.view_as(x) * self.norm.weight + self.norm.bias
