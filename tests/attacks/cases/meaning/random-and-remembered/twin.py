"""An element stays with probability (1 - p) to the fourth: one mask in place of four."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training:
            return x.mean(dim=-1)
        keep = (1.0 - self.p) ** 4
        return torch.empty_like(x).bernoulli_(keep).mul_(x).mean(dim=-1).div_(keep)
