"""Looks at its argument with a batch dimension, through a tensor of its own."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        y = self.layer(x.unsqueeze(0))
        return torch.sigmoid(y).mul_(y.tanh_()).squeeze(0)
