"""The mask lies in memory of its own, and is drawn in each call."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p
        self._masks = {}

    def forward(self, x):
        if not self.training:
            return x.clone()
        count = x.numel()
        if count not in self._masks:
            self._masks[count] = torch.empty(count, device=x.device)
        kept = self._masks[count].bernoulli_(1.0 - self.p).view(x.shape)
        return x * kept * (1.0 / (1.0 - self.p))
