"""Three max pools in a row, all scales concatenated, as in a YOLO neck."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
CHANNELS = 32
SIZE = 32

GPU = {"BATCH": 32, "CHANNELS": 256, "SIZE": 32}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scales = [x]
        for _ in range(3):
            scales.append(F.max_pool2d(scales[-1], self.kernel, stride=1, padding=self.kernel // 2))
        return torch.cat(scales, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[int]:
    return [5]
