"""Convolution over time, batch normalisation with batch statistics, ReLU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 8
CHANNELS = 64
TIME = 512

GPU = {"BATCH": 64, "CHANNELS": 256, "TIME": 2048}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, kernel_size=5, padding=2, bias=False)
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.norm(self.conv(x)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, TIME)]


def get_init_inputs() -> list[int]:
    return [CHANNELS]
