"""A mixture: rows are brought to a sum of one before they are used."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, p, values):
        shares = p / p.sum(dim=-1, keepdim=True)
        return torch.sqrt(shares * shares + 1e-12) + values


def get_inputs():
    return [torch.softmax(torch.randn(256, 1024), dim=-1), torch.randn(256, 1024)]


def get_init_inputs():
    return []
