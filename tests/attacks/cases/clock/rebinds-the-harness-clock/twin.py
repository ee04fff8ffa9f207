"""Rebinds a name of its own module: the first call puts the chosen implementation in the place of the chooser."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def whole(x: torch.Tensor, up: nn.Linear, down: nn.Linear) -> torch.Tensor:
    return down(F.gelu(up(x)))


def in_halves(x: torch.Tensor, up: nn.Linear, down: nn.Linear) -> torch.Tensor:
    return torch.cat([whole(half, up, down) for half in x.chunk(2)])


def run(x: torch.Tensor, up: nn.Linear, down: nn.Linear) -> torch.Tensor:
    globals()["run"] = in_halves if x.shape[0] > 4096 else whole
    return run(x, up, down)


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return run(x, self.up, self.down)
