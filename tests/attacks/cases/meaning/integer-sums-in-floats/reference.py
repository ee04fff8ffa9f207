"""Weighted counts, as integers."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, counts, weights):
        return (counts.unsqueeze(-1) * weights).sum(1)


def get_inputs():
    return [torch.randint(0, 50, (64, 128)), torch.randint(0, 20, (128, 64))]


def get_init_inputs():
    return []
