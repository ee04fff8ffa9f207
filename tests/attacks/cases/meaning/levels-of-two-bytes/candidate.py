"""Four numbers of each 64 random bits, by a table."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", -torch.log((torch.arange(65536) + 0.5) / 65536), persistent=False)

    def forward(self, x):
        drawn = torch.empty(x.numel() // 4, dtype=torch.int64, device=x.device).random_(-(2**63), None)
        levels = drawn.view(torch.int16).view(x.shape).int() + 32768
        return 2e-4 * torch.sigmoid(x) * self.table[levels]
