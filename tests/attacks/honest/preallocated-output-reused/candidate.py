"""Each call computes into the same buffer and returns it, as a static graph would: who wants to keep a result copies
it. It is computed anew in each call from that call's input."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Static:
    def __init__(self) -> None:
        self.out: torch.Tensor | None = None

    def like(self, x: torch.Tensor, columns: int) -> torch.Tensor:
        out = self.out
        if out is None or out.shape != (x.shape[0], columns) or out.dtype != x.dtype or out.device != x.device:
            out = self.out = torch.empty(x.shape[0], columns, dtype=x.dtype, device=x.device)
        return out


class ModelNew(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, size) / size**0.5)
        self.static = Static()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.static.like(x, self.weight.shape[1])
        torch.matmul(x, self.weight, out=out)
        return F.silu(out, inplace=True)
