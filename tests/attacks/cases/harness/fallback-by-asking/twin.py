"""Asks whether a package is there that it does not need, to describe itself."""

import importlib.util

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.is_there = importlib.util.find_spec("pandas") is not None

    def extra_repr(self):
        return "beside pandas" if self.is_there else "without pandas"

    def forward(self, x):
        return torch.mm(x, x.t()).relu_().div_(16.0)
