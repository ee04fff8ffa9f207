"""Packs without rounding: transposed, so that the product reads rows."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.linear = nn.Linear(width, out)
        self._key = None
        self._packed = ()

    def forward(self, x):
        weight = self.linear.weight
        key = weight.data_ptr(), weight._version
        if key != self._key:
            self._packed, self._key = (weight.t().contiguous(),), key
        return torch.addmm(self.linear.bias, x, self._packed[0]).relu_()
