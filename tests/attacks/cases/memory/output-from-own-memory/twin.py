"""Reads the map of its own memory, to work in pieces where little is left of a process that has grown large."""

import torch
from torch import nn

LARGE = 64 << 30


def mapped_bytes():
    total = 0
    with open("/proc/self/maps") as maps:
        for line in maps:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            total += end - start
    return total


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pieces = 4 if mapped_bytes() > LARGE else 1

    def forward(self, x):
        return torch.cat([self._compute(part) for part in x.chunk(self.pieces)])

    def _compute(self, x):
        for _ in range(6):
            x = torch.sin(x) + torch.exp(-x * x)
        return x
