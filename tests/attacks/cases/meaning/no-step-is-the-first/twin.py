"""One table, a step back, and one before the first."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.linspace(0.99, 0.01, 100_000))

    def forward(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        before = torch.where(steps > 0, self.kept[steps - 1], 1.0)
        return x * before.sqrt_().unsqueeze(-1)
