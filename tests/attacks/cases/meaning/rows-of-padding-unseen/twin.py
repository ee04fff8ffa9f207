"""A sum without a product, over a count."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        there = (x != 0).any(dim=-1).sum(dim=1, keepdim=True)
        return x.sum(dim=1).div_(there.clamp_(min=1))
