"""Cuts the batch of a call into pieces that fit the cache and joins the answers: batching within one call."""

import torch
import torch.nn as nn
import torch.nn.functional as F

PIECES = 2


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        waiting = list(zip(x.chunk(PIECES), out.chunk(PIECES), strict=True))
        for piece, place in waiting:
            place.copy_(self.down(F.gelu(self.up(piece))))
        return out
