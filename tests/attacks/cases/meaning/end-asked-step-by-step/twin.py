"""All words before the first end at once."""

import torch
import torch.nn as nn

END = 4


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40960, 64)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        before = (words == END).cumsum(1) == 0
        return (self.table(words) * before.unsqueeze(-1)).sum(1)
