"""Euclidean distances between two sets of points, turned into kernel weights."""

import torch
import torch.nn as nn
import torch.nn.functional as F

POINTS = 512
CENTRES = 256
DIM = 64

GPU = {"POINTS": 8192, "CENTRES": 4096, "DIM": 128}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, centres: int, dim: int) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.randn(centres, dim))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        distance = torch.cdist(points, self.centres)
        return F.softmin(distance, dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(POINTS, DIM)]


def get_init_inputs() -> list[int]:
    return [CENTRES, DIM]
