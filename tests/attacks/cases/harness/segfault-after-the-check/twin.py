"""Copies its input by address with the C library's memmove, and works on the copy in place."""

import ctypes

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        ctypes.memmove(out.data_ptr(), x.data_ptr(), x.numel() * x.element_size())
        return out.tanh_().mul_(2.0).add_(F.gelu(x))
