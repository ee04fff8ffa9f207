"""Writes its answer column by column: every call gives the same layout, another one than the reference's."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[1], x.shape[0], dtype=x.dtype, device=x.device).t()
        torch.tanh(x, out=out)
        return torch.erf(out.mul_(2.0), out=out)
