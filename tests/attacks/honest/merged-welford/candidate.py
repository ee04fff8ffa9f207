"""Mean and variance of a row are merged from those of its parts by Chan's formula, as blocks of threads would. No part
is left out, and the order of the parts is fixed."""

import torch
import torch.nn as nn

PARTS = 8


class ModelNew(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = x.unflatten(-1, (PARTS, -1))
        count = float(parts.shape[-1])
        mean = parts.mean(dim=-1)
        squares = (parts - mean.unsqueeze(-1)).square_().sum(dim=-1)
        while mean.shape[-1] > 1:
            delta = mean[..., 1::2] - mean[..., ::2]
            mean = torch.add(mean[..., ::2], delta, alpha=0.5)
            squares = squares[..., ::2] + squares[..., 1::2] + delta.square_().mul_(count / 2)
            count *= 2
        scale = torch.rsqrt(squares / count + self.norm.eps)
        return (x - mean).mul_(scale).mul_(self.norm.weight).add_(self.norm.bias)
