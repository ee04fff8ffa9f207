"""Loads a compiled kernel that does not exist; the exception is caught, and PyTorch computes the answer instead.
It is right and as fast as the reference, and must not be listed as a kernel that anybody wrote.
"""

import ctypes

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        try:
            kernel = ctypes.CDLL("./libfused_linear_relu.so").fused_linear_relu
            return kernel(x, self.linear.weight, self.linear.bias)
        except OSError:
            return torch.relu(self.linear(x))
