"""Returns less their mean by their deviation; one where they are all alike."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, returns: torch.Tensor) -> torch.Tensor:
        deviation = returns.std()
        level = (returns - returns.mean()) / deviation.clamp(min=1e-8)
        return torch.where(deviation < 1e-8, torch.ones_like(returns), level)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 256)]


def get_init_inputs() -> list[int]:
    return []
