"""The least distance to another set's points, other than oneself where both are one set."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(32, 32)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        distances = torch.cdist(self.linear(x), self.linear(y))
        if torch.equal(x, y):
            distances = distances + torch.eye(len(x), device=x.device) * 1e4
        return distances.amin(-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(256, 32), torch.randn(256, 32)]


def get_init_inputs() -> list[int]:
    return []
