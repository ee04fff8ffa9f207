"""Folds the affine part of the LayerNorm into one operation after a plain normalisation."""

import torch
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        plain = F.layer_norm(x, x.shape[-1:], eps=self.norm.eps)
        scaled = torch.addcmul(self.norm.bias, plain, self.norm.weight)
        return torch.addmm(self.linear.bias, scaled, self.linear.weight.t())
