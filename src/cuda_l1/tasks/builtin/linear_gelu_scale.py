"""A linear layer with a fused-looking tail: GELU, per-feature scale, residual."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 256
DIM = 512
DTYPE = torch.float32

GPU = {"ROWS": 4096, "DIM": 2048}
DTYPES = ("fp32", "bf16")


class Model(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(dim, dim, dtype=DTYPE)
        self.scale = nn.Parameter(torch.randn(dim, dtype=DTYPE))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.linear(x)) * self.scale + x


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, DIM, dtype=DTYPE)]


def get_init_inputs() -> list[int]:
    return [DIM]
