"""Compresses outliers in the rows that have any, which it looks for."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        std, mean = torch.std_mean(x, dim=1, keepdim=True)
        z = (x - mean).div_(std)
        rows = (z.abs().amax(dim=1) > 8.0).nonzero().flatten()
        if rows.numel():
            some = z[rows]
            beyond = torch.relu(some.abs() - 8.0)
            z[rows] = torch.sign(some) * (some.abs() - beyond + torch.log1p(beyond))
        return z
