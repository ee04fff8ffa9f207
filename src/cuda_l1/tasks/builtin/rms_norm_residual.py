"""Residual addition followed by RMSNorm; both the sum and the normalised rows go on."""

import torch
import torch.nn as nn

ROWS = 512
DIM = 1024
DTYPE = torch.float32

GPU = {"ROWS": 8192, "DIM": 4096}
DTYPES = ("fp32", "bf16")


class Model(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(dim, eps=1e-6, dtype=DTYPE)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = x + residual
        return self.norm(hidden), hidden


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, DIM, dtype=DTYPE), torch.randn(ROWS, DIM, dtype=DTYPE)]


def get_init_inputs() -> list[int]:
    return [DIM]
