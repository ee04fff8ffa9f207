"""The mask comes from uniform numbers of its own, so that the same seed drops other elements than the reference does.
An element is kept with the same probability, and each call draws anew; in eval mode nothing is drawn."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.rand(size) + 0.5)
        self.p = 0.3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x * self.gain
        kept = torch.rand(x.shape, dtype=x.dtype, device=x.device).ge_(self.p)
        return kept.mul_(x).mul_(self.gain / (1.0 - self.p))
