"""A matrix made symmetric, times a dense matrix."""

import torch
import torch.nn as nn

N = 512
M = 256

GPU = {"N": 4096, "M": 2048}
DTYPES = ("fp32",)


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        symmetric = (a + a.mT) / 2
        return symmetric @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(N, N), torch.randn(N, M)]


def get_init_inputs() -> list[int]:
    return []
