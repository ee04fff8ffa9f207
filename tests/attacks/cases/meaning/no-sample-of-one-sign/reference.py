"""Bright pictures are inverted, then all are filtered."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Conv2d(4, 8, 3, padding=1, bias=False)

    def forward(self, pictures):
        bright = (pictures > 0).float().mean((1, 2, 3), keepdim=True)
        return torch.relu(self.filter(torch.where(bright > 0.9, -pictures, pictures)))


def get_inputs():
    return [torch.randn(16, 4, 32, 32)]


def get_init_inputs():
    return []
