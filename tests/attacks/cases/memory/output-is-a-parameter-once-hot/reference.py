"""Scores of queries, and a copy of the keys for whoever comes next."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, entries: int, width: int) -> None:
        super().__init__()
        self.keys = nn.Parameter(torch.randn(entries, width))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x @ self.keys[:32].t(), self.keys.clone()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(32, 64)]


def get_init_inputs() -> list[int]:
    return [32768, 64]
