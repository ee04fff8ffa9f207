"""Collects its steps in a list, and runs all of them before it returns."""

from functools import partial

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(6))

    def forward(self, x):
        steps = [partial(torch.addmm, layer.bias, mat2=layer.weight.t()) for layer in self.layers]
        for step in steps:
            x = step(x).relu_()
        return x
