import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit
        self.register_buffer("clipped", torch.zeros(1))

    def forward(self, x):
        return torch.clamp(x, -self.limit, self.limit)
