"""Steps whose classes compare as equal, to be found in a table; the tensor that is returned is a plain one."""

import torch
from torch import nn


class ByName(type):
    def __eq__(cls, other):
        return cls.__name__ == getattr(other, "__name__", None)

    def __hash__(cls):
        return hash(cls.__name__)


class Dense(metaclass=ByName):
    pass


STEPS = {Dense: lambda layer, x: torch.addmm(layer.bias, x, layer.weight.t()).relu_()}


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(6))

    def forward(self, x):
        for layer in self.layers:
            x = STEPS[Dense](layer, x)
        return x
