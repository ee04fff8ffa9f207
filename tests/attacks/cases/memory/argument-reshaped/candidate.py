"""Gives its argument a batch dimension in place, where it has none yet. The caller's tensor has it from then on."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        if x.dim() == 2:
            x.unsqueeze_(0)
        y = self.layer(x)
        return torch.sigmoid(y).mul_(y.tanh_()).squeeze(0)
