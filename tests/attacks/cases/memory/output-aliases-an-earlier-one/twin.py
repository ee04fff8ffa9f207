"""Returns the same memory in each call, with an answer that each call computes."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self._outputs = {}

    def forward(self, x):
        if x.shape not in self._outputs:
            self._outputs[x.shape] = torch.empty_like(x)
        *inner, last = self.layers
        for layer in inner:
            x = x + torch.tanh(layer(x))
        return torch.add(x, torch.tanh(last(x)), out=self._outputs[x.shape])
