"""A softmax over nothing is no number."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v, mask):
        bias = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(~mask, float("-inf"))
        return torch.softmax(torch.baddbmm(bias, q, k.mT, alpha=q.shape[-1] ** -0.5), dim=-1) @ v
