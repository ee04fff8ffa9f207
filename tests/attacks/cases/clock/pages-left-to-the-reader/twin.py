"""Writes everything that it returns, in memory of the allocator's."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, longest: int) -> None:
        super().__init__()
        self.longest = longest

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, steps, width = x.shape
        out = torch.empty(rows, self.longest, width, dtype=x.dtype, device=x.device)
        torch.tanh(x, out=out[:, :steps])
        out[:, steps:].zero_()
        return out
