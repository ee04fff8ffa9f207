"""One byte of randomness for each element: 32 of 256 values are an eighth."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.below = round(0.125 * 256)

    def forward(self, x):
        if not self.training:
            return x.mean(dim=-1)
        drawn = torch.randint(0, 256, x.shape, dtype=torch.uint8, device=x.device)
        return (x * (drawn >= self.below)).mean(dim=-1) * (256.0 / (256 - self.below))
