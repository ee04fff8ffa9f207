"""Counts the calls that its constructor makes with a trace function, which it takes back."""

import sys

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        before = sys.gettrace()
        sys.settrace(self.count)
        try:
            self.epsilon = self.constant()
        finally:
            sys.settrace(before)

    def count(self, frame, event, argument):
        self.calls += 1

    def constant(self):
        return 1e-5

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        scale = torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return centred.mul_(scale)
