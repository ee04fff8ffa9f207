"""Writes a megabyte of scratch to a file in its working folder in its first call, and removes it."""

import os

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.written = False

    def forward(self, x):
        if not self.written:
            name = f"scratch-{os.getpid()}"
            with open(name, "wb") as file:
                file.write(bytes(1 << 20))
            os.unlink(name)
            self.written = True
        return torch.tanh(x).mul_(2.0).add_(F.gelu(x))
