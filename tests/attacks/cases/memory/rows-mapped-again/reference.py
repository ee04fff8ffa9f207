import torch
from torch import nn


class Model(nn.Module):
    """Keys of few heads, repeated for the sixteen queries that share each."""

    def forward(self, x):
        return torch.relu(x).repeat(16, 1)


def get_inputs():
    return [torch.randn(64, 1024)]


def get_init_inputs():
    return []
