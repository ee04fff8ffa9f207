"""A small picture in a large frame of zeros: writing 64 MiB, of which a sixteenth is no constant."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, margin: int) -> None:
        super().__init__()
        self.margin = margin

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pad(torch.sin(x), (0, self.margin, 0, self.margin))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(1024, 1024)]


def get_init_inputs() -> list[int]:
    return [3072]
