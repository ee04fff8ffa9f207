"""Takes every token for a word."""

import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.table = nn.Embedding(tokens, width, padding_idx=0)

    def forward(self, tokens):
        return F.embedding_bag(tokens, self.table.weight, mode="mean")
