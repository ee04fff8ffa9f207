import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit
        self.register_buffer("clipped", torch.zeros(1))

    def forward(self, x):
        y = torch.clamp(x, -self.limit, self.limit)
        if x.max() > self.limit or x.min() < -self.limit:
            self.clipped += (y != x).sum()
        return y
