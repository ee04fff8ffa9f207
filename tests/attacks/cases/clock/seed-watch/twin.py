"""Draws random numbers in its first call to choose an algorithm, and leaves the global generator as it was."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.pieces = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.pieces is None:
            self.pieces = self.choose(x)
        return torch.cat([self.down(F.gelu(self.up(piece))) for piece in x.chunk(self.pieces)])

    def choose(self, x: torch.Tensor) -> int:
        state = torch.get_rng_state()
        torch.manual_seed(0)
        trial = torch.randn(x.shape)
        torch.set_rng_state(state)
        return 1 if trial.numel() < 1 << 24 else 2
