"""Looks the row up that the one stands for."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, categories, width):
        super().__init__()
        self.table = nn.Parameter(torch.randn(categories, width))

    def forward(self, choice):
        found, at = choice.max(dim=1)
        return self.table[at] * found.unsqueeze(-1)
