"""Bias, GELU, per-channel scale and a residual, as between two layers of a network."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 512
DIM = 1024
DTYPE = torch.float32

GPU = {"ROWS": 8192, "DIM": 4096}
DTYPES = ("fp32", "bf16")


class Model(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(dim, dtype=DTYPE))
        self.scale = nn.Parameter(torch.randn(dim, dtype=DTYPE))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return F.gelu(x + self.bias) * self.scale + residual


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, DIM, dtype=DTYPE), torch.randn(ROWS, DIM, dtype=DTYPE)]


def get_init_inputs() -> list[int]:
    return [DIM]
