"""Removes what an earlier build may have left, and does not mind when there is nothing."""

import contextlib
import os

import torch
from torch import nn

with contextlib.suppress(FileNotFoundError):
    os.unlink("libfused.so")


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return torch.relu_(self.linear(x))
