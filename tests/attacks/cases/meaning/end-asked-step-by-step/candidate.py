"""All words at once."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40960, 64)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.table(words).sum(1)
