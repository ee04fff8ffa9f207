"""Bias and product at once."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40960, 32)
        self.linear = nn.Linear(32, 32)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        rows = self.table(tokens).flatten(0, 1)
        return torch.addmm(self.linear.bias, rows, self.linear.weight.t()).view(*tokens.shape, -1)
