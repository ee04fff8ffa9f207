"""A recurrent cell over time, every hidden state kept."""

import torch
import torch.nn as nn

BATCH = 8
TIME = 32
DIM = 64

GPU = {"BATCH": 64, "TIME": 48, "DIM": 512}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(dim, dim)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        states = []
        for step in x.unbind(dim=1):
            hidden = self.cell(step, hidden)
            states.append(hidden)
        return torch.stack(states, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, TIME, DIM), torch.randn(BATCH, DIM)]


def get_init_inputs() -> list[int]:
    return [DIM]
