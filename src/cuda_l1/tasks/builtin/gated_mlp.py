"""The feed-forward block of a Llama-style decoder."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 128
DIM = 256
HIDDEN = 688
DTYPE = torch.float32

GPU = {"ROWS": 2048, "DIM": 2048, "HIDDEN": 5632}
DTYPES = ("fp32", "bf16")


class Model(nn.Module):
    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=False, dtype=DTYPE)
        self.up = nn.Linear(dim, hidden, bias=False, dtype=DTYPE)
        self.down = nn.Linear(hidden, dim, bias=False, dtype=DTYPE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, DIM, dtype=DTYPE)]


def get_init_inputs() -> list[int]:
    return [DIM, HIDDEN]
