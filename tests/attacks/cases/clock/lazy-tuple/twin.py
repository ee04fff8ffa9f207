"""Returns a named tuple, whose elements are there when the call returns."""

from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F


class Layers(NamedTuple):
    answer: torch.Tensor
    hidden: torch.Tensor


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> Layers:
        hidden = F.gelu(torch.addmm(self.up.bias, x, self.up.weight.t()))
        return Layers(answer=self.down(hidden), hidden=hidden)
