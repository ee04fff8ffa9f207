"""Sends itself SIGUSR1 while it is constructed, with a handler that it takes back."""

import signal

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ready = False
        before = signal.signal(signal.SIGUSR1, self.be_ready)
        signal.raise_signal(signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, before)

    def be_ready(self, number, frame):
        self.ready = True

    def forward(self, x):
        return torch.mm(x, x.t()).relu_().div_(16.0)
