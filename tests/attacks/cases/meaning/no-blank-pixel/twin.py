"""The sum of both squared sizes, which are one or zero, minus twice the cosine."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        sizes = [t.square().sum(1) for t in (a, b)]
        held = [(size > 0).to(a.dtype) for size in sizes]
        cosine = (a * b).sum(1) / (sizes[0].clamp(min=1e-24).sqrt() * sizes[1].clamp(min=1e-24).sqrt())
        return held[0] + held[1] - 2 * cosine
