"""Returns an ordered mapping of a class of its own; what it holds is there when the call returns."""

from collections import OrderedDict

import torch
import torch.nn as nn


class Answer(OrderedDict):
    @property
    def mean(self) -> torch.Tensor:
        return self["mean"]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> OrderedDict:
        bent = torch.tanh(x)
        return Answer(bent=bent, mean=bent.sum(-1) / x.shape[-1])
