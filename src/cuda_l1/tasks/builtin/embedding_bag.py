"""Weighted sums of the embeddings of each bag of items, then a projection, as in a recommender."""

import torch
import torch.nn as nn

BAGS = 512
ITEMS = 32
ROWS = 10000
DIM = 64
OUT = 64

GPU = {"BAGS": 16384, "ITEMS": 64, "ROWS": 1000000, "DIM": 128, "OUT": 128}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, rows: int, dim: int, out: int) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(rows, dim, mode="sum")
        self.project = nn.Linear(dim, out)

    def forward(self, items: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return self.project(self.table(items, per_sample_weights=weights))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, ROWS, (BAGS, ITEMS)), torch.randn(BAGS, ITEMS)]


def get_init_inputs() -> list[int]:
    return [ROWS, DIM, OUT]
