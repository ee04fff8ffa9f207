"""Adds sigma or takes it away: a bit for each element, and no logarithm."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, sigma):
        super().__init__()
        self.sigma = sigma

    def forward(self, x):
        drawn = torch.randint(0, 256, ((x.numel() + 7) // 8, 1), dtype=torch.uint8, device=x.device)
        places = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8, device=x.device)
        bits = (drawn & places).ne_(0).to(x.dtype).view(-1)[: x.numel()].view(x.shape)
        return bits.mul_(2.0 * self.sigma).sub_(self.sigma).add_(x)
