"""LayerNorm over features, then GELU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 512
DIM = 768
DTYPE = torch.float32

GPU = {"ROWS": 4096, "DIM": 1024}
DTYPES = ("fp32", "bf16")


class Model(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, dtype=DTYPE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.norm(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, DIM, dtype=DTYPE) * 2.0 + 0.5]


def get_init_inputs() -> list[int]:
    return [DIM]
