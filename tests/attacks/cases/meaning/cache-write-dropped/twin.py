"""Writes the entry in place, and sums by a product."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, query, entry, cache):
        cache.select(1, cache.shape[1] - 1).copy_(entry)
        scores = torch.bmm(cache, query[:, :, None]).div_(query.shape[-1] ** 0.5)
        return torch.bmm(torch.softmax(scores, dim=1).transpose(1, 2), cache).squeeze(1)
