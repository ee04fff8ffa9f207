"""Divides by the norm, whatever it is. Zero by zero is no direction."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)
