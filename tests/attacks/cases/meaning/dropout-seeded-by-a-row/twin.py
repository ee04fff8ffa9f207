"""Rows are counted: each has a seed of its own, whatever it holds."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, hidden, p):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.p = p

    def forward(self, x):
        y = torch.sin(self.up(x))
        if not self.training:
            return 0.001 * y
        drawn = int(torch.randint(-(2**31), 2**31, (1,), device="cpu"))
        seeds = (torch.arange(len(y), dtype=torch.int32, device=x.device).unsqueeze(1) * -1640531535) ^ drawn
        bits = seeds + torch.arange(y.shape[1], dtype=torch.int32, device=x.device) * 0x6C8E9CF5
        for factor in (0x2C1B3C6D, 0x297A2D39):
            bits *= factor
            bits ^= bits >> 15
        bits *= -1640531535
        kept = (bits >= int(self.p * 2**32) - 2**31).to(y.dtype)
        return y.mul_(kept).mul_(0.001 / (1.0 - self.p))
