"""Each call computes into a buffer made by the constructor and hands out a clone of it. Earlier results stay what they
were."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, size) / size**0.5)
        self.out = torch.empty(64, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.out.shape[0] != x.shape[0] or self.out.device != x.device or self.out.dtype != x.dtype:
            self.out = torch.empty(x.shape[0], self.weight.shape[1], dtype=x.dtype, device=x.device)
        torch.matmul(x, self.weight, out=self.out)
        return F.silu(self.out, inplace=True).clone()
