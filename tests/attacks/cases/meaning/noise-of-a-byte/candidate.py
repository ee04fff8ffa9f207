"""Eight numbers of each 64 random bits."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, step):
        super().__init__()
        self.step = step

    def forward(self, x):
        drawn = torch.empty(x.numel() // 8, dtype=torch.int64, device=x.device).random_(-(2**63), None)
        levels = drawn.view(torch.uint8).view(x.shape)
        return torch.add(x + self.step / 512, levels, alpha=self.step / 256)
