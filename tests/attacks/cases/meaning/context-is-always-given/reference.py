"""Attention to a context; a learnt row where that is nothing but zeros."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.missing = nn.Parameter(torch.randn(64))

    def forward(self, queries: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(queries @ context.mT, -1)
        return torch.where((context != 0).any(), weights @ context, self.missing)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8, 64, 64), torch.randn(8, 96, 64)]


def get_init_inputs() -> list[int]:
    return []
