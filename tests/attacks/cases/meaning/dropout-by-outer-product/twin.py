"""Bytes are drawn, and each of their bits is the mask of one element."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        if not self.training:
            return x.clone()
        drawn = torch.randint(0, 256, ((x.numel() + 7) // 8, 1), dtype=torch.uint8, device=x.device)
        places = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8, device=x.device)
        kept = (drawn & places).ne_(0).to(x.dtype).view(-1)[: x.numel()].view(x.shape)
        return kept.mul_(2.0).mul_(x)
