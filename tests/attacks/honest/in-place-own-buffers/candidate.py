"""Intermediates live in one scratch buffer for each shape, dtype and device, which every call overwrites before it
reads it. The result is a new tensor, and the inputs are only read."""

import torch
import torch.nn as nn


class Scratch:
    def __init__(self) -> None:
        self.kept: dict[tuple[object, ...], torch.Tensor] = {}

    def like(self, x: torch.Tensor) -> torch.Tensor:
        key = (x.shape, x.dtype, x.device)
        if key not in self.kept:
            self.kept[key] = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        return self.kept[key]


class ModelNew(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.rand(size) + 0.5)
        self.scratch = Scratch()

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        hidden = self.scratch.like(x)
        torch.mul(x, self.gain, out=hidden)
        hidden.add_(y).tanh_()
        return torch.sub(hidden, y).mul_(hidden)
