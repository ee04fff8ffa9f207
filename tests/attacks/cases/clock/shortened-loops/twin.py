"""Calls a helper of its own `range`: rows of a batch in pieces; the builtin is left alone."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def range(rows: int, step: int) -> list[slice]:
    starts = torch.arange(0, rows, step).tolist()
    return [slice(start, start + step) for start in starts]


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pieces = [self.down(F.gelu(self.up(x[rows]))) for rows in range(x.shape[0], 32)]
        return torch.cat(pieces)
