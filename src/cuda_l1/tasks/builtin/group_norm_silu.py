"""GroupNorm and SiLU on an image, as in a diffusion U-Net."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
CHANNELS = 64
SIZE = 64

GPU = {"BATCH": 16, "CHANNELS": 320, "SIZE": 64}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(32, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(self.norm(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[int]:
    return [CHANNELS]
