"""Largest numbers in one pass over the channels."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x.amax((0, 2, 3)).view(1, -1, 1, 1)
