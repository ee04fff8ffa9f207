"""Messages added as they are."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x).index_add_(0, target, x[source])
