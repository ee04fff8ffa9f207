"""Prints what it is while it is imported."""

import os

import torch
import torch.nn.functional as F
from torch import nn

os.write(1, b'{"kernel": "tanh and gelu", "in place": true}\n')


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.tanh(x).mul_(2.0).add_(F.gelu(x))
