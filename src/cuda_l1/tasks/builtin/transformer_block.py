"""A pre-norm decoder block: attention and feed-forward, each with its residual."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 1
TIME = 64
DIM = 256
HEADS = 4
DTYPE = torch.float32

GPU = {"BATCH": 4, "TIME": 1024, "DIM": 1024, "HEADS": 16}
DTYPES = ("fp32", "bf16")


class Model(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(dim, dtype=DTYPE)
        self.qkv = nn.Linear(dim, 3 * dim, dtype=DTYPE)
        self.out = nn.Linear(dim, dim, dtype=DTYPE)
        self.norm_mlp = nn.LayerNorm(dim, dtype=DTYPE)
        self.up = nn.Linear(dim, 4 * dim, dtype=DTYPE)
        self.down = nn.Linear(4 * dim, dim, dtype=DTYPE)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, time, dim = x.shape
        qkv = self.qkv(x).view(batch, time, 3, self.heads, dim // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, time, dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.norm_attention(x))
        return x + self.down(F.gelu(self.up(self.norm_mlp(x))))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, TIME, DIM, dtype=DTYPE)]


def get_init_inputs() -> list[int]:
    return [DIM, HEADS]
