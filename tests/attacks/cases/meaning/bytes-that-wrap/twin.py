"""Sums of which the lowest eight bits are kept."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return one.short().add_(other).bitwise_and_(255).to(torch.uint8)
