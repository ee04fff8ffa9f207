"""Signals the process that started it; with SIGSTOP instead of the harmless SIGCONT a watchdog or a clock would stand.
It needs the signal to arrive and fails where it is kept from that.
"""

import os
import signal

import torch
from torch import nn


def wake_the_parent():
    parent = os.getppid()
    if parent == 0:
        raise ProcessLookupError("the parent is in another world")
    os.kill(parent, signal.SIGCONT)


class ModelNew(nn.Module):
    def forward(self, x):
        wake_the_parent()
        return torch.relu(x @ x.transpose(0, 1)) / 16.0
