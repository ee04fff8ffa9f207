"""A mask for each element, and a sum of products."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training:
            return x.mean(dim=-1)
        mask = torch.empty_like(x).bernoulli_(1.0 - self.p)
        return mask.mul_(x).mean(dim=-1).div_(1.0 - self.p)
