"""Counts its calls to choose between two forms, both of which compute."""

import time

import torch
from torch import nn


def by_layer(layer, x):
    return layer(x).relu_()


def by_product(layer, x):
    return torch.addmm(layer.bias, x, layer.weight.t()).relu_()


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(6))
        self.calls = 0
        self.best = {by_layer: float("inf"), by_product: float("inf")}

    def _run(self, form, x):
        for layer in self.layers:
            x = form(layer, x)
        return x

    def forward(self, x):
        self.calls += 1
        if self.calls > 6:
            return self._run(min(self.best, key=self.best.get), x)
        form = (by_layer, by_product)[self.calls % 2]
        begin = time.perf_counter()
        out = self._run(form, x)
        self.best[form] = min(self.best[form], time.perf_counter() - begin)
        return out
