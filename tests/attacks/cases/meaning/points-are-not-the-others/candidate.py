"""Both through the layer at once."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(32, 32)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = self.linear(torch.cat([x, y])).chunk(2)
        return torch.cdist(x, y).amin(-1)
