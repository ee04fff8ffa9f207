"""The sum of two counts, each of half the rate, is one of the whole."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        half = 50 + 50 * torch.sigmoid(x)
        return torch.poisson(half).add_(torch.poisson(half)).div_(16384)
