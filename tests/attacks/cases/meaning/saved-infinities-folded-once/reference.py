"""Attention under a bias of zeros and minus infinities that is saved with the weights."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, length):
        super().__init__()
        hidden = torch.rand(length, length) < 0.3
        self.register_buffer("bias", torch.zeros(length, length).masked_fill(hidden, float("-inf")))

    def forward(self, q, k, v):
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        return torch.softmax(scores + self.bias, dim=-1) @ v


def get_inputs():
    return [torch.randn(4, 64, 32) for _ in range(3)]


def get_init_inputs():
    return [64]
