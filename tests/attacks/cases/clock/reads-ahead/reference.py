"""Two linear layers with a GELU between them, plus rows of a table that is an input too."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor, table: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x))) + table[rows]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 192), torch.randn(16384, 192), torch.randint(16384, (64,))]


def get_init_inputs() -> list[int]:
    return [192]
