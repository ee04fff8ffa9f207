"""The cycle collector rests while a call makes many short-lived views, and is put back as it was, whatever happens.
Nothing is looked for among the collector's objects."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn as nn


@contextmanager
def without_collection() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape[0], x.shape[1] - 1, dtype=x.dtype, device=x.device)
        with without_collection():
            ordered = x.sort(dim=-1).values
            for row, target in zip(ordered.unbind(), out.unbind(), strict=True):
                torch.sub(row[1:], row[:-1], out=target)
        return out
