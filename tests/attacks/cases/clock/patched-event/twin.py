"""Derives a stop watch from `torch.cuda.Event`, to choose in its first call between two ways of computing."""

import torch
import torch.nn as nn


class StopWatch(torch.cuda.Event):
    @classmethod
    def of(cls, work) -> float:
        begin, end = cls(enable_timing=True), cls(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.third = nn.Linear(width, width)
        self.chosen = None

    def compute(self, x: torch.Tensor) -> torch.Tensor:
        return self.third(torch.relu(self.second(torch.relu(self.first(x)))))

    def halved(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.compute(half) for half in x.chunk(2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.chosen is None:
            ways = (self.compute, self.halved)
            times = [min(StopWatch.of(lambda way=way: way(x)) for _ in range(3)) for way in ways]
            self.chosen = ways[times.index(min(times))]
        return self.chosen(x)
