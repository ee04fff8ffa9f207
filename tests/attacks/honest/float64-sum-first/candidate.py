"""Sums before it multiplies, which rounds otherwise: nobody has computed the truth any more exactly."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a.sum(0) @ b
