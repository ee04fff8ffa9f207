"""A subclass that counts the operations on it; the answer is handed out as a plain tensor."""

import torch
from torch import nn


class Counted(torch.Tensor):
    operations = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.operations += 1
        return super().__torch_function__(func, types, args, kwargs or {})


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(6))

    def forward(self, x):
        counted = x.as_subclass(Counted)
        for layer in self.layers:
            counted = torch.relu(layer(counted))
        return counted.as_subclass(torch.Tensor)
