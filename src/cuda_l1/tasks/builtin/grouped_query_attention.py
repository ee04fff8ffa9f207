"""Causal attention in which several query heads share a key-value head."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
TIME = 128
HEADS = 8
KV_HEADS = 2
HEAD_DIM = 64
DTYPE = torch.float32

GPU = {"BATCH": 2, "TIME": 1024, "HEADS": 32, "KV_HEADS": 8, "HEAD_DIM": 128}
DTYPES = ("fp32", "bf16")


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def get_inputs() -> list[torch.Tensor]:
    q = torch.randn(BATCH, HEADS, TIME, HEAD_DIM, dtype=DTYPE)
    k = torch.randn(BATCH, KV_HEADS, TIME, HEAD_DIM, dtype=DTYPE)
    v = torch.randn(BATCH, KV_HEADS, TIME, HEAD_DIM, dtype=DTYPE)
    return [q, k, v]


def get_init_inputs() -> list[int]:
    return []
