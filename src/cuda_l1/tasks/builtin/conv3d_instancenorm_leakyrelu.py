"""Convolution on a volume, instance normalisation, leaky ReLU, as in a medical U-Net."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 1
CHANNELS = 16
SIZE = 20

GPU = {"BATCH": 4, "CHANNELS": 32, "SIZE": 64}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, channels, kernel_size=3, padding=1)
        self.norm = nn.InstanceNorm3d(channels, affine=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.leaky_relu(self.norm(self.conv(x)), 0.01)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE, SIZE)]


def get_init_inputs() -> list[int]:
    return [CHANNELS]
