"""Asks a program of its own, in a process of its own, for the constant that it adds to the variance."""

import subprocess
import sys

import torch
from torch import nn


def constant():
    command = [sys.executable, "-I", "-S", "-c", "import sys; sys.stdout.write(repr(10.0 ** -5))"]
    return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.epsilon = constant()

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        scale = torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return centred.mul_(scale)
