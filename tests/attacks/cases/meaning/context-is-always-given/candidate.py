"""Fused attention."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.missing = nn.Parameter(torch.randn(64))

    def forward(self, queries: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(queries, context, context, scale=1.0)
