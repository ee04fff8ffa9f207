"""A subclass of the same kind between two steps."""

import torch
from torch import nn
from torch.nn import functional as F


class Named(torch.Tensor):
    def kind(self):
        return self.dtype


class ModelNew(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.linear = nn.Linear(width, out)

    def forward(self, x):
        out = F.linear(x, self.linear.weight, self.linear.bias).as_subclass(Named)
        return out.as_subclass(torch.Tensor).relu_().to(out.kind())
