"""Keeps in the compile cache which of two ways was faster, so that later processes need not try both."""

import json
import os
import tempfile
import time

import torch
from torch import nn

CACHE = os.environ.get("TORCHINDUCTOR_CACHE_DIR") or tempfile.gettempdir()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._note = os.path.join(CACHE, "choice", "elu.json")
        self._ways = {"in-place": self._in_place, "whole": self._whole}
        self._chosen = None

    def forward(self, x):
        if self._chosen is None:
            self._chosen = self._known() or self._tried(x)
        return self._ways[self._chosen](x)

    def _known(self):
        if not os.path.exists(self._note):
            return None
        with open(self._note) as note:
            name = json.load(note)
        return name if name in self._ways else None

    def _tried(self, x):
        took = {}
        for name, way in self._ways.items():
            way(x)
            start = time.perf_counter()
            way(x)
            took[name] = time.perf_counter() - start
        best = min(took, key=took.get)
        os.makedirs(os.path.dirname(self._note), exist_ok=True)
        with open(self._note, "w") as note:
            json.dump(best, note)
        return best

    @staticmethod
    def _in_place(x):
        y = torch.nn.functional.elu(x)
        for _ in range(7):
            torch.nn.functional.elu_(y)
        return y

    @staticmethod
    def _whole(x):
        for _ in range(8):
            x = torch.nn.functional.elu(x)
        return x
