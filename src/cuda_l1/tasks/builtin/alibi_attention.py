"""Attention with linear position biases, its scores written out."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
TIME = 128
HEADS = 4
HEAD_DIM = 64

GPU = {"BATCH": 4, "TIME": 1024, "HEADS": 16, "HEAD_DIM": 64}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, heads: int, time: int) -> None:
        super().__init__()
        slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
        distance = torch.arange(time)[None, :] - torch.arange(time)[:, None]
        self.register_buffer("bias", slopes[:, None, None] * distance.abs().neg())

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        return F.softmax(scores + self.bias, dim=-1) @ v


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, HEADS, TIME, HEAD_DIM) for _ in range(3)]


def get_init_inputs() -> list[int]:
    return [HEADS, TIME]
