"""Says once on the standard error, by its descriptor, which path it takes."""

import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        os.write(2, f"a linear layer of {width} with its relu in place\n".encode())

    def forward(self, x):
        return torch.relu_(self.linear(x))
