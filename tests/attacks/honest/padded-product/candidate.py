"""Counts how often each token comes in a row, and multiplies the counts by the table."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(tokens, width, padding_idx=0)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        weight = self.table.weight
        counts = torch.zeros(len(tokens), len(weight), dtype=weight.dtype, device=weight.device)
        counts.scatter_add_(1, tokens, torch.ones(tokens.shape, dtype=weight.dtype, device=weight.device))
        return counts @ weight
