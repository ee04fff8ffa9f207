"""Weigh the channels of an image by a small network on their means."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 8
CHANNELS = 64
SIZE = 32

GPU = {"BATCH": 64, "CHANNELS": 256, "SIZE": 56}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.reduce = nn.Linear(channels, channels // 4)
        self.expand = nn.Linear(channels // 4, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = F.adaptive_avg_pool2d(x, 1).flatten(1)
        gates = torch.sigmoid(self.expand(F.relu(self.reduce(pooled))))
        return x * gates[:, :, None, None]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[int]:
    return [CHANNELS]
