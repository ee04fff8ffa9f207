"""The median, where it lies between two quantiles of the first numbers; else the whole series is looked through."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        first = x[:8192].sort().values
        least, most = first[3700], first[4492]
        place = (x.numel() + 1) // 2 - int((x < least).sum())
        between = x[(x >= least) & (x <= most)]
        if not 1 <= place <= between.numel():
            return torch.median(x)
        return between.kthvalue(place).values
