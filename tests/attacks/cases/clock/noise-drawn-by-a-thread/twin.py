"""Draws the noise of each call in that call, into memory that it keeps."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, 16) * width**-0.5)
        self.kept = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x @ self.weight
        if self.kept is None or self.kept.shape != x.shape:
            self.kept = torch.empty_like(x)
        return torch.add(x, self.kept.normal_(), alpha=0.001) @ self.weight
