"""Asks the allocator for uninitialised memory of the same size, and writes the product to it before reading it."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inner, columns) / inner**0.5)

    def forward(self, x):
        product = torch.empty(x.shape[0], self.weight.shape[1], dtype=x.dtype, device=x.device)
        torch.mm(x, self.weight, out=product)
        return product.amax(dim=1)
