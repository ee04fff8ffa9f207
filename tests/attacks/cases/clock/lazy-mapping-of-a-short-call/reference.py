"""The hyperbolic tangent and its mean along each row, by name."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        bent = torch.tanh(x)
        return {"bent": bent, "mean": bent.mean(-1)}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(32, 128)]


def get_init_inputs() -> list[int]:
    return []
