"""The upper 24 of 32 random bits, as many as a float32 holds."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, step):
        super().__init__()
        self.step = step

    def forward(self, x):
        drawn = torch.empty(x.numel(), dtype=torch.int32, device=x.device).random_(0, 2**24)
        return torch.add(x, drawn.view(x.shape), alpha=self.step / 2**24)
