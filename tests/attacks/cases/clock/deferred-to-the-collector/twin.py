"""Lends a workspace to each call by an object whose `__del__` gives it back; the work is done in the call."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Lent:
    def __init__(self, free: list[torch.Tensor], like: torch.Tensor) -> None:
        self.free = free
        self.space = free.pop() if free else torch.empty_like(like)

    def __del__(self) -> None:
        self.free.append(self.space)


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.free = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        lent = Lent(self.free, x) if not self.free or self.free[-1].shape == x.shape else Lent([], x)
        lent.space.copy_(x)
        return self.down(F.gelu(self.up(lent.space)))
