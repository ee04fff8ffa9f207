"""A diagonal matrix, given by its diagonal, times a dense matrix."""

import torch
import torch.nn as nn

N = 1536
M = 1024
DTYPE = torch.float32

GPU = {"N": 4096, "M": 4096}
DTYPES = ("fp32", "bf16")


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.diag(a) @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(N, dtype=DTYPE), torch.randn(N, M, dtype=DTYPE)]


def get_init_inputs() -> list[int]:
    return []
