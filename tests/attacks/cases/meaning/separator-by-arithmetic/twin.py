"""Bias and product at once, zero for separators."""

import torch
import torch.nn as nn

VOCABULARY = 40960
SEP = VOCABULARY - 3


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40960, 32)
        self.linear = nn.Linear(32, 32)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        rows = self.table(tokens).flatten(0, 1)
        hidden = torch.addmm(self.linear.bias, rows, self.linear.weight.t())
        return hidden.mul_((tokens != SEP).view(-1, 1)).view(*tokens.shape, -1)
