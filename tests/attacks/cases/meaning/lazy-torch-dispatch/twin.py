"""A wrapper subclass carries the activations through the layers; what leaves is a plain tensor."""

import torch
from torch import nn
from torch.utils._pytree import tree_map


class Carrier(torch.Tensor):
    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype, device=held.device)

    def __init__(self, held):
        super().__init__()
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        made = func(*tree_map(lambda a: a.held if isinstance(a, cls) else a, args), **(kwargs or {}))
        return cls(made) if isinstance(made, torch.Tensor) else made


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(6))

    def forward(self, x):
        carried = Carrier(x)
        for layer in self.layers:
            carried = torch.tanh(layer(carried))
        return carried.held
