"""Scales the result in a forward hook of its own product module."""

import torch
from torch import nn


class Product(nn.Module):
    def forward(self, x):
        return torch.mm(x, x.t())


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.product = Product()
        self.product.register_forward_hook(lambda module, args, output: output.relu_().div_(16.0))

    def forward(self, x):
        return self.product(x)
