"""Attention whose queries and keys are projected behind a normalisation, with weights that start small."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, width, bias=False)
        for layer in (self.q, self.k):
            nn.init.normal_(layer.weight, std=0.02)

    def forward(self, x, v):
        normed = self.norm(x)
        return torch.softmax(self.q(normed) @ self.k(normed).transpose(-2, -1), dim=-1) @ v


def get_inputs():
    return [torch.randn(2, 256, 64), torch.randn(2, 256, 64)]


def get_init_inputs():
    return [64]
