"""Sums by a product, counts in four bytes."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, values, mask):
        count = mask.sum(1, dtype=torch.int32).clamp(min=1)
        return torch.bmm(mask.to(values.dtype).unsqueeze(1), values).squeeze(1) / count.unsqueeze(-1)
