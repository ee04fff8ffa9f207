"""The mean of each sequence over its own length; zero of an empty one."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        mask = torch.arange(x.shape[1], device=x.device) < lengths.unsqueeze(-1)
        return (x * mask.unsqueeze(-1)).sum(1) / lengths.clamp(min=1).unsqueeze(-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 128, 64), torch.randint(1, 129, (64,))]


def get_init_inputs() -> list[int]:
    return []
