"""Rectifies in place where no gradient is asked for, and by a function that has one elsewhere."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(6))

    def forward(self, x):
        rectify = torch.relu if torch.is_grad_enabled() else torch.relu_
        for layer in self.layers:
            x = rectify(layer(x))
        return x
