"""Counts its calls, and keeps scratch memory from the thirtieth on; what is there is counted in every call."""

import torch
from torch import nn

HOT = 30


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self._scratch = None

    def forward(self, x):
        self.calls += 1
        if self.calls < HOT:
            return x.sum(dim=1) / torch.count_nonzero(x, dim=1).clamp_(min=1)
        if self._scratch is None or self._scratch.shape != x.shape[:1]:
            self._scratch = torch.empty(x.shape[:1], dtype=x.dtype, device=x.device)
        torch.sum(x, dim=1, out=self._scratch)
        return self._scratch / torch.count_nonzero(x, dim=1).clamp_(min=1)
