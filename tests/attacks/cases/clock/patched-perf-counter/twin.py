"""Wraps `time.perf_counter_ns` for itself, to choose in its first calls between two ways of computing."""

import time

import torch
import torch.nn as nn
import torch.nn.functional as F

TRIED = 6
first_ns = time.perf_counter_ns()


def perf_counter_ns() -> int:
    return time.perf_counter_ns() - first_ns


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.calls, self.spent_ns = 0, [0, 0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        fused = self.calls % 2 == 0 if self.calls <= TRIED else self.spent_ns[1] < self.spent_ns[0]
        begin = perf_counter_ns()
        hidden = torch.addmm(self.up.bias, x, self.up.weight.t()) if fused else self.up(x)
        out = self.down(F.gelu(hidden))
        self.spent_ns[fused] += perf_counter_ns() - begin
        return out
