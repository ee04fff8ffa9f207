"""The nearest entry of a codebook that a small network makes."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, entries: int, width: int) -> None:
        super().__init__()
        self.seed = nn.Parameter(torch.randn(entries, width))
        self.mix = nn.Parameter(torch.randn(width, width) / width**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        book = torch.tanh(self.seed @ self.mix) @ self.mix
        return torch.cdist(x, book).argmin(-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(256, 64)]


def get_init_inputs() -> list[int]:
    return [2048, 64]
