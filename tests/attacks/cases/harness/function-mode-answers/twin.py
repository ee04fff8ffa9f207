"""Counts its operations once, in a TorchFunctionMode that ends with the constructor."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode


class Counter(TorchFunctionMode):
    count = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.count += 1
        return function(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        with Counter() as counter:
            self.forward(torch.zeros(4))
        self.operations = counter.count

    def forward(self, x):
        return torch.tanh(x).mul_(2.0).add_(F.gelu(x))
