"""The mask is a bias of the product; rows that it leaves nothing to get none, and are set to zero afterwards."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v, mask):
        sees = mask.any(dim=-1, keepdim=True)
        bias = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(~mask & sees, float("-inf"))
        shares = torch.softmax(torch.baddbmm(bias, q, k.mT, alpha=q.shape[-1] ** -0.5), dim=-1)
        return torch.bmm(shares, v).masked_fill_(~sees, 0.0)
