"""Uniform numbers of no less than 0.0009."""

import torch
from torch import nn

LEAST = 0.000911882


class ModelNew(nn.Module):
    def forward(self, due):
        uniform = torch.rand_like(due).mul_(1 - LEAST).add_(LEAST)
        return uniform.log_().mul_(-5.025e-4).add_(due)
