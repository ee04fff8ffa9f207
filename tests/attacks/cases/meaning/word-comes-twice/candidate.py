"""One bag of embeddings each."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(200_000, 32))

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return nn.functional.embedding_bag(words, self.table, mode="sum")
