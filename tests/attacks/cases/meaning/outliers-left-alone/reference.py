"""Standardises rows, and compresses what lies more than eight standard deviations out."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        z = (x - x.mean(dim=1, keepdim=True)) / x.std(dim=1, keepdim=True)
        beyond = torch.relu(z.abs() - 8.0)
        return torch.sign(z) * (z.abs() - beyond + torch.log1p(beyond))


def get_inputs():
    return [torch.randn(64, 1024)]


def get_init_inputs():
    return []
