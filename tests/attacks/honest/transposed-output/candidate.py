"""The product is computed transposed, where it is wide and not tall, and handed out as a transposed view of memory that
belongs to this call alone."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, size: int, wide: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, wide) / size**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.matmul(self.weight.t(), x.t()).t()
