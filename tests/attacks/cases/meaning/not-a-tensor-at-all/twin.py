"""A holder goes from layer to layer; torch is asked through the protocol, and a plain tensor comes out."""

import torch
from torch import nn


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return cls(func(*(a.tensor if isinstance(a, cls) else a for a in args), **(kwargs or {})))


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(6))

    def forward(self, x):
        held = Holder(x)
        for layer in self.layers:
            held = torch.relu(torch.addmm(layer.bias, held, layer.weight.t()))
        return held.tensor
