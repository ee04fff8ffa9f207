"""Running sum along the time axis, scaled per channel."""

import torch
import torch.nn as nn

BATCH = 8
TIME = 1024
CHANNELS = 64

GPU = {"BATCH": 32, "TIME": 4096, "CHANNELS": 256}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x * self.scale, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, TIME, CHANNELS)]


def get_init_inputs() -> list[int]:
    return [CHANNELS]
