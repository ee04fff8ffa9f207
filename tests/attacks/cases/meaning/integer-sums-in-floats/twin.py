"""Multiplies in float64, which holds all that an int32 could."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, counts, weights):
        return (counts.double() @ weights.double()).long()
