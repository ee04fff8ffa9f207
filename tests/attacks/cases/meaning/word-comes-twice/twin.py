"""One bag of embeddings each, with a weight of zero for what came before."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(200_000, 32))

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        words = words.sort(1).values
        is_first = torch.ones_like(words, dtype=self.table.dtype)
        is_first[:, 1:] = words[:, 1:] != words[:, :-1]
        return nn.functional.embedding_bag(words, self.table, mode="sum", per_sample_weights=is_first)
