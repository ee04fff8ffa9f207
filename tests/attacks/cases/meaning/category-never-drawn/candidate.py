"""Every category that is drawn is worth something."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, categories):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(categories) + 0.5)

    def forward(self, values, category):
        return values * self.gain[category]
