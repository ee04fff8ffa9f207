"""A linear layer whose weight is kept in eight bits with a scale per output."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 32
IN = 1024
OUT = 1024
DTYPE = torch.float32

GPU = {"ROWS": 64, "IN": 4096, "OUT": 11008}
DTYPES = ("fp32", "bf16")


class Model(nn.Module):
    def __init__(self, features_in: int, features_out: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (features_out, features_in), dtype=torch.int8))
        self.scale = nn.Parameter((0.5 + torch.rand(features_out, 1, dtype=DTYPE)) / (127 * features_in**0.5))
        self.bias = nn.Parameter(torch.randn(features_out, dtype=DTYPE))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight.to(x.dtype) * self.scale, self.bias)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, IN, dtype=DTYPE)]


def get_init_inputs() -> list[int]:
    return [IN, OUT]
