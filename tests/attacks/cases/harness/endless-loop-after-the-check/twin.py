"""Normalises blocks of rows in a loop."""

import torch
from torch import nn

ROWS = 64


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        start = 0
        while start < len(x):
            block = x[start : start + ROWS]
            centred = block - block.mean(-1, keepdim=True)
            scale = torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-5)
            torch.mul(centred, scale, out=out[start : start + ROWS])
            start += ROWS
        return out
