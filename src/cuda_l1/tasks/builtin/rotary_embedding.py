"""Rotate the halves of queries and keys by their position."""

import torch
import torch.nn as nn

BATCH = 2
HEADS = 8
TIME = 256
HEAD_DIM = 64
DTYPE = torch.float32

GPU = {"BATCH": 8, "HEADS": 32, "TIME": 2048, "HEAD_DIM": 128}
DTYPES = ("fp32", "bf16")


class Model(nn.Module):
    def __init__(self, time: int, head_dim: int) -> None:
        super().__init__()
        inverse_frequency = 10000.0 ** (-torch.arange(0, head_dim, 2) / head_dim)
        angles = torch.outer(torch.arange(time, dtype=torch.float32), inverse_frequency)
        angles = torch.cat([angles, angles], dim=-1)
        self.register_buffer("cos", angles.cos().to(DTYPE))
        self.register_buffer("sin", angles.sin().to(DTYPE))

    def rotate(self, x: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, dim=-1)
        return x * self.cos + torch.cat([-second, first], dim=-1) * self.sin

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.rotate(q), self.rotate(k)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, HEADS, TIME, HEAD_DIM, dtype=DTYPE) for _ in range(2)]


def get_init_inputs() -> list[int]:
    return [TIME, HEAD_DIM]
