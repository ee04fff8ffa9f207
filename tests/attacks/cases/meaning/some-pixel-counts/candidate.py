"""Sums over counts."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.default = nn.Parameter(torch.tensor(3.0))

    def forward(self, x: torch.Tensor, y: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        return torch.dot((x - y).abs_().flatten(), valid.to(x.dtype).flatten()) / valid.sum().clamp(min=1)
