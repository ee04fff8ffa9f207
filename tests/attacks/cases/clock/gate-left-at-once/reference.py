"""Three products of 2048, about a millisecond of a large GPU in float32."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.third = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.third(torch.relu(self.second(torch.relu(self.first(x)))))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2048, 2048)]


def get_init_inputs() -> list[int]:
    return [2048]
