"""Reads its own file, for a version that changes with the text."""

import hashlib
from pathlib import Path

import torch
from torch import nn

VERSION = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def extra_repr(self):
        return f"version={VERSION}"

    def forward(self, x):
        return torch.relu_(self.linear(x))
