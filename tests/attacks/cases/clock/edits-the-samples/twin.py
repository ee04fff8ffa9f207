"""Keeps a list of its own first calls' times, reads it off its own frame, and drops it."""

import sys
import time

import torch
import torch.nn as nn

KEPT = 4


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.third = nn.Linear(width, width)
        self.seconds = [0.0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        times = self.seconds
        begin = time.perf_counter()
        out = self.third(torch.relu(self.second(torch.relu(self.first(x)))))
        if len(times) < KEPT:
            sys._getframe(0).f_locals["times"].append(time.perf_counter() - begin)
        return out
