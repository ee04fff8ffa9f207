"""Uses `statistics` to choose in its first calls between two ways of computing."""

import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

TRIED = 6


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.seconds = {True: [], False: []}
        self.fused = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.fused is not None:
            return self.run(x, self.fused)
        fused = len(self.seconds[True]) < len(self.seconds[False])
        begin = time.perf_counter()
        out = self.run(x, fused)
        self.seconds[fused].append(time.perf_counter() - begin)
        if len(self.seconds[True]) == TRIED // 2:
            self.fused = statistics.median(self.seconds[True]) < statistics.median(self.seconds[False])
        return out

    def run(self, x: torch.Tensor, fused: bool) -> torch.Tensor:
        hidden = torch.addmm(self.up.bias, x, self.up.weight.t()) if fused else self.up(x)
        return self.down(F.gelu(hidden))
