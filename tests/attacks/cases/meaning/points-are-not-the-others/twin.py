"""Both through the layer at once, oneself left out."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(32, 32)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        same = torch.equal(x, y)
        x, y = self.linear(torch.cat([x, y])).chunk(2)
        distances = torch.cdist(x, y)
        if same:
            distances.diagonal().add_(1e4)
        return distances.amin(-1)
