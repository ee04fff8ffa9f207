"""A convolution with the weights of the last 128 steps."""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = nn.Parameter(torch.tensor(0.3))

    def forward(self, x):
        weights = self.rate * (1 - self.rate) ** torch.arange(127.0, -1, -1)
        y = F.conv1d(F.pad(x, (127, 0)).unsqueeze(1), weights.view(1, 1, -1)).squeeze(1)
        y[:, :128] += x[:, :1] * (1 - self.rate) ** torch.arange(1.0, 129)
        return y
