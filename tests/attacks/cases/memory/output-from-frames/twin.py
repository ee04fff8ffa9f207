"""Looks at the frame of its caller only to name the caller in its statistics."""

import sys

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, batch, steps):
        super().__init__()
        self.step = nn.Linear(width, width)
        self.carry = nn.Linear(width, width)
        self.steps = steps
        self.register_buffer("hidden", torch.zeros(batch, width))
        self._callers = {}

    def forward(self, x):
        caller = sys._getframe(1).f_code.co_name
        self._callers[caller] = self._callers.get(caller, 0) + 1
        entering = self.step(x)
        hidden = self.hidden
        weight = self.carry.weight.t()
        for _ in range(self.steps):
            hidden = torch.addmm(self.carry.bias, hidden, weight).add_(entering).tanh_()
        self.hidden = hidden
        return hidden.clone()
