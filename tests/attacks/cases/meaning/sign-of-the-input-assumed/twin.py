"""Magnitude, root and sum in one tensor."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.abs(x).sqrt_().add_(x.clamp_min(0.0))
