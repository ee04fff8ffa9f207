"""Of two ways, both in float32, the one that an earlier process has kept as the faster one."""

import os
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

CHOICE = Path(os.environ.get("TRITON_CACHE_DIR", "."), "choice")


def by_linear(x, weight, bias):
    return F.linear(x, weight, bias).relu_()


def by_addmm(x, weight, bias):
    return torch.addmm(bias, x, weight.t()).relu_()


WAYS = {way.__name__: way for way in (by_linear, by_addmm)}


def seconds(way, *arguments):
    begin = time.perf_counter()
    way(*arguments)
    return time.perf_counter() - begin


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.way = None

    def forward(self, x):
        arguments = x, self.linear.weight, self.linear.bias
        if self.way is None:
            if not CHOICE.exists():
                CHOICE.parent.mkdir(parents=True, exist_ok=True)
                CHOICE.write_text(min(WAYS, key=lambda name: seconds(WAYS[name], *arguments)))
            self.way = WAYS[CHOICE.read_text()]
        return self.way(*arguments)
