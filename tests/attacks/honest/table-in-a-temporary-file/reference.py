import math

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, rows: int, size: int) -> None:
        super().__init__()
        position = torch.arange(rows, dtype=torch.float64)[:, None]
        rate = torch.exp(torch.arange(0, size, 2, dtype=torch.float64) * (-math.log(10000.0) / size))
        self.register_buffer("table", torch.cat([torch.sin(position * rate), torch.cos(position * rate)], -1).float())
        self.gain = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return x * self.gain + self.table[index]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 128), torch.randint(0, 512, (64,))]


def get_init_inputs() -> list[int]:
    return [512, 128]
