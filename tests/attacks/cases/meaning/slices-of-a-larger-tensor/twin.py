"""A product with the mask, and the last element where there is nothing to divide by."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        weights = mask.to(x.dtype)
        count = weights.sum(1, keepdim=True)
        mean = torch.bmm(weights.unsqueeze(1), x).squeeze(1) / count.clamp(min=1)
        return torch.where(count > 0, mean, x[:, -1])
