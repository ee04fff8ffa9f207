"""How far apart two images are at each pixel, by their directions over the channels."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a = torch.nn.functional.normalize(a, dim=1)
        b = torch.nn.functional.normalize(b, dim=1)
        return ((a - b) ** 2).sum(1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 32, 24, 24), torch.randn(4, 32, 24, 24)]


def get_init_inputs() -> list[int]:
    return []
