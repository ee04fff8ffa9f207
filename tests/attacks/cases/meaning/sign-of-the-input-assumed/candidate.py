"""Takes every input to be positive."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.sqrt(x).add_(x)
