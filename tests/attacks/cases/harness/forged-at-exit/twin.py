"""Keeps a scratch tensor between calls and lets go of it when the interpreter ends."""

import atexit

import torch
import torch.nn.functional as F
from torch import nn

SCRATCH = {}
atexit.register(SCRATCH.clear)


class ModelNew(nn.Module):
    def forward(self, x):
        scratch = SCRATCH.get(x.shape)
        if scratch is None:
            scratch = SCRATCH[x.shape] = torch.empty_like(x)
        torch.tanh(x, out=scratch)
        return scratch.mul_(2.0) + F.gelu(x)
