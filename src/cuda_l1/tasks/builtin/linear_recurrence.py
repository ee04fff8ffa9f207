"""A decaying state driven by gated inputs, step by step: the heart of a state-space layer."""

import torch
import torch.nn as nn

BATCH = 8
TIME = 64
DIM = 256

GPU = {"BATCH": 32, "TIME": 128, "DIM": 2048}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.decay = nn.Parameter(torch.randn(dim))

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        decay = torch.sigmoid(self.decay)
        driven = x * torch.sigmoid(gate)
        state = torch.zeros_like(x[:, 0])
        states = []
        for step in range(x.shape[1]):
            state = decay * state + driven[:, step]
            states.append(state)
        return torch.stack(states, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, TIME, DIM), torch.randn(BATCH, TIME, DIM)]


def get_init_inputs() -> list[int]:
    return [DIM]
