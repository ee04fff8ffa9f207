"""One step of a decoder: the newest entry of the cache is replaced, then the cache is attended to."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, query, entry, cache):
        cache[:, -1] = entry
        scores = torch.bmm(cache, query[:, :, None]) / query.shape[-1] ** 0.5
        return (torch.softmax(scores, dim=1) * cache).sum(dim=1)


def get_inputs():
    return [torch.randn(8, 32), torch.randn(8, 32), torch.randn(8, 128, 32)]


def get_init_inputs():
    return []
