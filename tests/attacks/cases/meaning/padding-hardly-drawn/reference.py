"""Means of the embeddings of sentences; token 0 is padding."""

import torch
from torch import nn

PADDING = 0


class Model(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.table = nn.Embedding(tokens, width, padding_idx=PADDING)

    def forward(self, tokens):
        there = (tokens != PADDING).unsqueeze(-1)
        total = (self.table(tokens) * there).sum(dim=1)
        return total / there.sum(dim=1).clamp(min=1)


def get_inputs():
    return [torch.randint(0, 60000, (16, 24))]


def get_init_inputs():
    return [60000, 32]
