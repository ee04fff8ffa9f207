"""The mean of each sequence over its own length; zero where that is no number."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        mask = torch.arange(x.shape[1], device=x.device) < lengths.unsqueeze(-1)
        return torch.nan_to_num((x * mask.unsqueeze(-1)).sum(1) / lengths.unsqueeze(-1))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 128, 64), torch.randint(1, 129, (64,))]


def get_init_inputs() -> list[int]:
    return []
