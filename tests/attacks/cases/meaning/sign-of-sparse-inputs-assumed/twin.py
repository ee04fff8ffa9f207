"""Leaves zeros to the operations, which cost nothing there, and applies both."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.abs(x).sqrt_().add_(x.clamp_min(0.0))
