"""Clamps before it converts."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, levels: int) -> None:
        super().__init__()
        self.levels = levels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.add(x, 8).mul_(8).clamp_(0, self.levels - 1).floor_().to(torch.int16).to(torch.int32)
