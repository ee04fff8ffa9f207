"""Says in its description whether a package is there that it does not need."""

import torch
from torch import nn

try:
    import numpy
except ImportError:
    numpy = None


class ModelNew(nn.Module):
    def extra_repr(self):
        return "beside NumPy" if numpy is not None else "without NumPy"

    def forward(self, x):
        return torch.mm(x, x.t()).relu_().div_(16.0)
