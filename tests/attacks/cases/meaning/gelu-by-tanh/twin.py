"""x times the normal distribution, written out."""

import torch
from torch import nn

ROOT = 0.5**0.5


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.erf(x * ROOT).add_(1.0).mul_(x).mul_(0.5)
