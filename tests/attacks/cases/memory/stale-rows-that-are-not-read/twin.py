"""Brings to length only the rows that are read."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.proj = nn.Linear(width, width)

    def forward(self, ids):
        rows = torch.nn.functional.embedding(ids, self.table.weight)
        return self.proj(rows / rows.norm(dim=-1, keepdim=True).clamp(min=1.0))
