"""The same cell with its state overwritten in place."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, batch, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.hidden = torch.zeros(batch, width)

    def forward(self, x):
        self.hidden.mul_(0.002).add_(self.linear(x)).tanh_()
        return self.hidden * 2.0
