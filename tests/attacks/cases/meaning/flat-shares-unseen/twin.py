"""The best 512, or all of them where these hold less than nine tenths in some row."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, shares):
        shares = shares / shares.sum(-1, keepdim=True)
        best, places = shares.topk(512, dim=-1)
        if bool((best.sum(-1) < 0.95).any()):
            best, places = shares.sort(-1, descending=True)
        best = best * (best.cumsum(-1) - best < 0.9)
        return torch.zeros_like(shares).scatter_(-1, places, best / best.sum(-1, keepdim=True))
