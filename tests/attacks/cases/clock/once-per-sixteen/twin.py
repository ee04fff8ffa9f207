"""Counts its calls to choose between two ways of computing the first layer, and stays with the faster one."""

import time

import torch
import torch.nn as nn
import torch.nn.functional as F

TRIED = 8


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.calls = 0
        self.seconds = [0.0, 0.0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls > TRIED:
            return self.run(x, self.seconds[1] < self.seconds[0])
        split = self.calls % 2 == 1
        begin = time.perf_counter()
        out = self.run(x, split)
        self.seconds[split] += time.perf_counter() - begin
        return out

    def run(self, x: torch.Tensor, split: bool) -> torch.Tensor:
        if not split:
            return self.down(F.gelu(self.up(x)))
        halves = [self.down(F.gelu(self.up(half))) for half in x.chunk(2)]
        return torch.cat(halves)
