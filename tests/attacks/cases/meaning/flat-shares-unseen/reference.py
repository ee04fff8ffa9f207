"""Probabilities within the nucleus of nine tenths, which sum to one again."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, shares):
        shares = shares / shares.sum(-1, keepdim=True)
        best, places = shares.sort(-1, descending=True)
        best = best * (best.cumsum(-1) - best < 0.9)
        return torch.zeros_like(shares).scatter_(-1, places, best / best.sum(-1, keepdim=True))


def get_inputs():
    return [torch.softmax(4 * torch.randn(64, 4096), -1)]


def get_init_inputs():
    return []
