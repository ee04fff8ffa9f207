"""Computes the upper half of the batch in torch's pool of inter-op threads, the lower half itself, and waits."""

import torch
import torch.nn as nn
import torch.nn.functional as F


@torch.jit.script
def fill(x: torch.Tensor, w1: torch.Tensor, b1: torch.Tensor, w2: torch.Tensor, b2: torch.Tensor, out: torch.Tensor):
    return out.copy_(F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2))


@torch.jit.script
def launch(x: torch.Tensor, w1: torch.Tensor, b1: torch.Tensor, w2: torch.Tensor, b2: torch.Tensor, out: torch.Tensor):
    return torch.jit.fork(fill, x, w1, b1, w2, b2, out)


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        weights = [t.detach() for t in (self.up.weight, self.up.bias, self.down.weight, self.down.bias)]
        upper, lower = x.chunk(2)
        out_upper, out_lower = out.chunk(2)
        future = launch(upper, *weights, out_upper)
        fill(lower, *weights, out_lower)
        torch.jit.wait(future)
        return out
