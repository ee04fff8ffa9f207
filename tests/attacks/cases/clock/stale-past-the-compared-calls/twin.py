"""Chooses in its first calls with a tensor between the whole batch and halves of it, and works in each call."""

import time

import torch
import torch.nn as nn

TRIED = 4


class ModelNew(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.blur = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.calls, self.seconds = 0, [0.0, 0.0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        halved = self.calls % 2 == 1 if self.calls <= TRIED else self.seconds[1] < self.seconds[0]
        begin = time.perf_counter()
        out = torch.cat([self.blur(half) for half in x.chunk(2)]) if halved else self.blur(x)
        self.seconds[halved] += time.perf_counter() - begin
        return out
