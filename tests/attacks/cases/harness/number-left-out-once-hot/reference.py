import torch
import torch.nn as nn


class Model(nn.Module):
    """Doubled rows, and how many of all pairs are nearer to each other than a radius."""

    def forward(self, x):
        near = int((torch.cdist(x, x) < 7.0).sum())
        return 2 * x, near


def get_inputs():
    return [torch.randn(1000, 32)]


def get_init_inputs():
    return []
