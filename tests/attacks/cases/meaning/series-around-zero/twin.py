"""exp(x) = expm1(x) + 1."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.expm1(x).add_(1.0)
