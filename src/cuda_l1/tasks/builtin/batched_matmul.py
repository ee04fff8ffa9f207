"""A stack of matrices times the transposes of another stack."""

import torch
import torch.nn as nn

BATCH = 16
ROWS = 128
INNER = 64
COLUMNS = 128
DTYPE = torch.float32

GPU = {"BATCH": 128, "ROWS": 512, "INNER": 128, "COLUMNS": 512}
DTYPES = ("fp32", "bf16")


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.bmm(x, y.transpose(1, 2))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, ROWS, INNER, dtype=DTYPE), torch.randn(BATCH, COLUMNS, INNER, dtype=DTYPE)]


def get_init_inputs() -> list[int]:
    return []
