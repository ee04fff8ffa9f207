"""Two products of few rows with large matrices, which is reading these: 64 MiB in float32."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.relu(self.up(x)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8, 1448)]


def get_init_inputs() -> list[int]:
    return [1448]
