"""Reads how many threads it may use from its environment, and the processor's features from /proc."""

import os
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.threads = int(os.environ.get("OMP_NUM_THREADS") or 1)
        self.wide = "avx512f" in Path("/proc/cpuinfo").read_text()

    def extra_repr(self):
        return f"threads={self.threads}, wide={self.wide}"

    def forward(self, x):
        return torch.tanh(x).mul_(2.0).add_(F.gelu(x))
