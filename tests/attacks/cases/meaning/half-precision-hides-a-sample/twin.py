"""Sums of rows, then of columns, in float32."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.down = nn.Linear(channels, hidden).bfloat16()
        self.up = nn.Linear(hidden, channels).bfloat16()

    def forward(self, x):
        rows = x.sum(dim=3, dtype=torch.float32)
        squeezed = (rows.sum(dim=2) / (x.shape[2] * x.shape[3])).to(x.dtype)
        gate = torch.sigmoid(self.up(torch.relu(self.down(squeezed))))
        return x * gate[:, :, None, None]
