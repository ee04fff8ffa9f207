"""Numbers over the largest; ones where all are zero."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        peak = x.abs().amax()
        return torch.where(peak == 0, torch.ones_like(x), x / peak.clamp(min=1e-12))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(512, 512)]


def get_init_inputs() -> list[int]:
    return []
