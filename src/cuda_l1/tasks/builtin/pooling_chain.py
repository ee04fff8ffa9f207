"""Max pool, average pool and a soft clip: the head of a small vision network."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 8
CHANNELS = 32
SIZE = 64

GPU = {"BATCH": 64, "CHANNELS": 128, "SIZE": 112}
DTYPES = ("fp32",)


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = F.max_pool2d(x, kernel_size=3, stride=2, padding=1)
        return torch.tanh(F.avg_pool2d(pooled, kernel_size=2))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[int]:
    return []
