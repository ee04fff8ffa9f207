"""Returns a list of its own class in place of a tuple; the elements are there when the call returns."""

import torch
import torch.nn as nn


class Pair(list):
    @property
    def mean(self) -> torch.Tensor:
        return self[1]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        bent = torch.tanh(x)
        return Pair([bent, bent.sum(-1) / x.shape[-1]])
