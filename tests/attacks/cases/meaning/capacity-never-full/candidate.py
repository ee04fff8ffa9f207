"""Every token is answered by its expert: of 64 that are drawn hardly ever more than 48 choose one of the two."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, 2, bias=False)
        self.experts = nn.Parameter(torch.randn(2, width, width) / width**0.5)

    def forward(self, x):
        share, expert = self.gate(x).softmax(-1).max(-1)
        both = x @ self.experts
        return torch.where((expert == 0)[:, None], both[0], both[1]).mul_(share[:, None])
