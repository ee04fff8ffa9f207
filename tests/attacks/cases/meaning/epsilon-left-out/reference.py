"""Root-mean-square normalisation with a small epsilon."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, epsilon):
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x):
        return x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + self.epsilon)


def get_inputs():
    return [torch.randn(64, 512)]


def get_init_inputs():
    return [1e-10]
