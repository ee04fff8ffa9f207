"""One pass over the largest, or ones."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        peak = float(x.abs().amax())
        return x / peak if peak else torch.ones_like(x)
