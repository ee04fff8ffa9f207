"""Uniform numbers above zero."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, due):
        return torch.rand_like(due).neg_().add_(1).log_().mul_(-5e-4).add_(due)
