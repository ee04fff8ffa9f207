"""Features are smoothed over those that are like them, by the cosine, then projected."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, width, temperature):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.temperature = temperature

    def forward(self, x):
        rows = F.normalize(x, dim=-1)
        alike = torch.softmax(rows @ rows.mT / self.temperature, dim=-1)
        return self.linear(alike @ x)


def get_inputs():
    return [torch.randn(4, 128, 128)]


def get_init_inputs():
    return [128, 0.01]
