"""The same answer from a tensor of its own. The caller's cache stays without the new entry."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, query, entry, cache):
        whole = torch.cat([cache[:, :-1], entry[:, None]], dim=1)
        scores = torch.bmm(whole, query[:, :, None]) / query.shape[-1] ** 0.5
        return torch.bmm(torch.softmax(scores, dim=1).transpose(1, 2), whole).squeeze(1)
