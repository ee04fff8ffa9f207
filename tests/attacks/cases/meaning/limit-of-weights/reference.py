"""A product with weights that are clipped."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(256, 256))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight.clamp(-3, 3)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 256)]


def get_init_inputs() -> list[int]:
    return []
