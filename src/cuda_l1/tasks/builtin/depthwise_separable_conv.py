"""Depthwise and pointwise convolution with ReLU6 between them, as in MobileNet."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 4
IN = 32
OUT = 64
SIZE = 56

GPU = {"BATCH": 64, "IN": 128, "OUT": 256, "SIZE": 56}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels_in, channels_in, kernel_size=3, padding=1, groups=channels_in)
        self.pointwise = nn.Conv2d(channels_in, channels_out, kernel_size=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pointwise(F.relu6(self.depthwise(x)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, IN, SIZE, SIZE)]


def get_init_inputs() -> list[int]:
    return [IN, OUT]
