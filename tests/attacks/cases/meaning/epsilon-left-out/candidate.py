"""Divides by the root mean square as it is."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, epsilon):
        super().__init__()

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True))
