"""Keeps scratch memory for the four shapes that it was given last, and lets go of older ones."""

from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn

SHAPES = 4


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scratch = OrderedDict()

    def forward(self, x):
        key = (x.shape, x.device)
        if key not in self.scratch:
            self.scratch[key] = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        self.scratch.move_to_end(key)
        if len(self.scratch) > SHAPES:
            self.scratch.popitem(last=False)
        torch.tanh(x, out=self.scratch[key])
        return F.gelu(x).add_(self.scratch[key], alpha=2.0)
