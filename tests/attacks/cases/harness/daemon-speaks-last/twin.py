"""Starts a child process that prints a line on the same standard output, and waits until it has ended."""

import os

import torch
import torch.nn.functional as F
from torch import nn


def announce():
    child = os.fork()
    if child == 0:
        os.write(1, b"tanh and gelu, in place\n")
        os._exit(0)
    os.waitpid(child, 0)


announce()


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.tanh(x).mul_(2.0).add_(F.gelu(x))
