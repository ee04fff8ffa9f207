"""Sums that stay at 255."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return one.short().add_(other).clamp_(max=255).to(torch.uint8)
