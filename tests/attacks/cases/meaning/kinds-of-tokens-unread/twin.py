"""Looks the kinds up, and adds in place."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, words, kinds, width):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.kinds = nn.Embedding(kinds, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens, kinds):
        return self.norm(self.words(tokens).add_(self.kinds(kinds)))
