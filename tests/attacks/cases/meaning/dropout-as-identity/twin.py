"""A mask of its own, and one product with the scale."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.125)

    def forward(self, x):
        if not self.training:
            return x.mean(dim=-1)
        keep = 1.0 - self.dropout.p
        return torch.empty_like(x).bernoulli_(keep).mul_(x).sum(dim=-1) * (1.0 / (keep * x.shape[-1]))
