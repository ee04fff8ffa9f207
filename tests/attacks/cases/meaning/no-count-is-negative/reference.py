"""A product of magnitudes with integers."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.abs() @ y


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, 100, (256, 256)), torch.randint(0, 100, (256, 256))]


def get_init_inputs() -> list[int]:
    return []
