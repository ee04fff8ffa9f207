"""Starts from a state of zeros in each call, and leaves it so."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, batch, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.hidden = torch.zeros(batch, width)

    def forward(self, x):
        return self.linear(x).tanh_().mul_(2.0)
