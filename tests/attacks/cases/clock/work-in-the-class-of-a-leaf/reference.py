"""The hyperbolic tangent, and nothing beside it: where a pair is asked for, its second place is empty."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, None]:
        return torch.tanh(x), None


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(512, 512)]


def get_init_inputs() -> list[int]:
    return []
