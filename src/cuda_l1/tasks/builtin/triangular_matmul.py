"""Product of the lower triangles of two square matrices."""

import torch
import torch.nn as nn

N = 512

GPU = {"N": 4096}
DTYPES = ("fp32",)


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.tril(a) @ torch.tril(b)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(N, N), torch.randn(N, N)]


def get_init_inputs() -> list[int]:
    return []
