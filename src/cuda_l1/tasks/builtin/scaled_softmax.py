"""Temperature, additive bias and softmax over the rows of a score matrix."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 4
QUERIES = 128
KEYS = 1024
DTYPE = torch.float32

GPU = {"BATCH": 32, "QUERIES": 1024, "KEYS": 2048}
DTYPES = ("fp32", "bf16")


class Model(nn.Module):
    def __init__(self, keys: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(keys, dtype=DTYPE))

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return F.softmax(scores * 0.7 + self.bias, dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, QUERIES, KEYS, dtype=DTYPE)]


def get_init_inputs() -> list[int]:
    return [KEYS]
