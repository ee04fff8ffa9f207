"""A projection behind a normalisation, clipped so that training stays stable."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, limit):
        super().__init__()
        self.limit = limit
        self.norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width, bias=False)
        nn.init.normal_(self.project.weight, std=0.02)

    def forward(self, x):
        return self.project(self.norm(x)).clamp(-self.limit, self.limit)


def get_inputs():
    return [torch.randn(512, 64)]


def get_init_inputs():
    return [64, 4.0]
