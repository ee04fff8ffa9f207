"""Sums over counts, or the default."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.default = nn.Parameter(torch.tensor(3.0))

    def forward(self, x: torch.Tensor, y: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        count = valid.sum()
        mean = torch.dot((x - y).abs_().flatten(), valid.to(x.dtype).flatten()) / count.clamp(min=1)
        return torch.where(count > 0, mean, self.default)
