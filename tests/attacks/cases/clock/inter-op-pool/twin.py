"""Computes the upper half of the batch in torch's pool of inter-op threads, the lower half itself, and waits."""

import torch
import torch.nn as nn
import torch.nn.functional as F


@torch.jit.script
def network(x: torch.Tensor, w1: torch.Tensor, b1: torch.Tensor, w2: torch.Tensor, b2: torch.Tensor):
    return F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2)


@torch.jit.script
def run(x: torch.Tensor, w1: torch.Tensor, b1: torch.Tensor, w2: torch.Tensor, b2: torch.Tensor):
    upper, lower = x.chunk(2)
    future = torch.jit.fork(network, upper, w1, b1, w2, b2)
    below = network(lower, w1, b1, w2, b2)
    return torch.cat([torch.jit.wait(future), below])


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = [t.detach() for t in (self.up.weight, self.up.bias, self.down.weight, self.down.bias)]
        return run(x, *weights)
