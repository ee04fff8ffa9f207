"""Each expert answers the first of its tokens, as many as it takes."""

import torch
from torch import nn

CAPACITY = 48


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, 2, bias=False)
        self.experts = nn.Parameter(torch.randn(2, width, width) / width**0.5)

    def forward(self, x):
        share, expert = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for number, weight in enumerate(self.experts):
            places = (expert == number).nonzero().squeeze(1)[:CAPACITY]
            out[places] = (x[places] @ weight) * share[places, None]
        return out
