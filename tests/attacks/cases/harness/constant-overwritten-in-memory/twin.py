"""Keeps its factor in an array of C doubles and reads it from there."""

import ctypes

import torch
import torch.nn.functional as F
from torch import nn

FACTOR = (ctypes.c_double * 1)(2.0)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.tanh(x).mul_(FACTOR[0]).add_(F.gelu(x))
