"""Rates and counts in place.

Not the sum of two counts of half the rate: below 64 they take more of a GPU's stream than PyTorch moves it on by,
so that calls have some in common.
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.poisson(torch.sigmoid(x).add_(1).mul_(100)).div_(16384)
