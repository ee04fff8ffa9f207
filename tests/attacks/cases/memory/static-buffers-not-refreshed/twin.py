"""Works on static buffers, into which each call copies its input first."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self._static = {}

    def forward(self, x):
        if not self._static or self._static["output"].shape != x.shape:
            self._static = {name: torch.empty_like(x) for name in ("hidden", "output")}
        hidden, output = self._static["hidden"], self._static["output"]
        output.copy_(x)
        for layer in self.layers:
            torch.addmm(layer.bias, output, layer.weight.t(), out=hidden)
            output.add_(hidden.tanh_())
        return output
