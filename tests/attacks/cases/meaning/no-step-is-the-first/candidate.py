"""One table, a step back."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.linspace(0.99, 0.01, 100_000))

    def forward(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        return x * self.kept[steps - 1].sqrt_().unsqueeze(-1)
