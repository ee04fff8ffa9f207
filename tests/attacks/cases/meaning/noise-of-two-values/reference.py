"""Adds a little Gaussian noise."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, sigma):
        super().__init__()
        self.sigma = sigma

    def forward(self, x):
        return x + self.sigma * torch.randn_like(x)


def get_inputs():
    return [torch.randn(64, 512)]


def get_init_inputs():
    return [0.001]
