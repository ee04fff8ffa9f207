"""Collects what its constructor left behind, and remembers how many objects the garbage collector tracks."""

import gc

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        gc.collect()
        self.tracked = len(gc.get_objects())

    def forward(self, x):
        return torch.relu_(self.linear(x))
