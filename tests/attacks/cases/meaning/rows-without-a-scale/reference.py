"""Rows rounded to what integers of eight bits can say of them."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = (x.abs().amax(-1, keepdim=True) / 127).clamp(min=1e-8)
        return (x / scale).round() * scale


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(512, 256)]


def get_init_inputs() -> list[object]:
    return []
