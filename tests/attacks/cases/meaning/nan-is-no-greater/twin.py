"""Marks what the mask hides as not a number, which `nanmean` leaves out; a row without any has the mean 0."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x, mask):
        mixed = self.mix(x).masked_fill_(~mask, float("nan"))
        return torch.where(mask.any(-1), mixed.nanmean(-1), 0.0)
