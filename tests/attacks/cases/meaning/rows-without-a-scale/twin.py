"""The least scale is added where there is none."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        low, high = x.aminmax(dim=-1, keepdim=True)
        scale = torch.maximum(high, -low).div_(127).clamp_(min=1e-8)
        return (x / scale).round_().mul_(scale)
