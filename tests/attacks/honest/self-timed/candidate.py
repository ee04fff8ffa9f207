"""Each call notes how long it took, in a bounded log under a lock, for whoever watches a service. The figures are read
by nobody here and change nothing about what is computed."""

import threading
import time
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F


class Log:
    def __init__(self, size: int) -> None:
        self.lock = threading.Lock()
        self.calls = 0
        self.seconds: deque[float] = deque(maxlen=size)

    def add(self, seconds: float) -> None:
        with self.lock:
            self.calls += 1
            self.seconds.append(seconds)


class ModelNew(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.log = Log(64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        begin = time.perf_counter()
        hidden = F.layer_norm(x, self.norm.normalized_shape, self.norm.weight, self.norm.bias, self.norm.eps)
        result = F.elu_(hidden).add_(x)
        self.log.add(time.perf_counter() - begin)
        return result
