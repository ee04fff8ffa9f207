"""Silences the standard output while it prints a long table to it, and gives the descriptor back afterwards."""

import os

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        for row in range(1000):
            os.write(1, f"row {row} of a table that nobody wants to read\n".encode())
        os.dup2(kept, 1)
        os.close(nothing)
        os.close(kept)

    def forward(self, x):
        return torch.tanh(x).mul_(2.0).add_(F.gelu(x))
