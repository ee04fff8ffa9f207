"""Multi-head causal self-attention with its projections and residual."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
TIME = 128
DIM = 256
HEADS = 4
DTYPE = torch.float32

GPU = {"BATCH": 8, "TIME": 1024, "DIM": 1024, "HEADS": 16}
DTYPES = ("fp32", "bf16")


class Model(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, dtype=DTYPE)
        self.out = nn.Linear(dim, dim, dtype=DTYPE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, time, dim = x.shape
        q, k, v = (
            part.view(batch, time, self.heads, dim // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(dim, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(batch, time, dim))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, TIME, DIM, dtype=DTYPE)]


def get_init_inputs() -> list[int]:
    return [DIM, HEADS]
