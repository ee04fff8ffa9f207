"""The gain of what is unknown is zero, in a copy that is made in every call."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, categories):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(categories) + 0.5)

    def forward(self, values, category):
        gain = self.gain.clone()
        gain[11] = 0.0
        return values * gain[category]
