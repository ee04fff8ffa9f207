"""A long short-term memory cell over time, operation by operation, every hidden state kept."""

import torch
import torch.nn as nn

BATCH = 8
TIME = 32
DIM = 64


class Model(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.from_input = nn.Linear(dim, 4 * dim)
        self.from_hidden = nn.Linear(dim, 4 * dim, bias=False)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        states = []
        for step in x.unbind(dim=1):
            gates = self.from_input(step) + self.from_hidden(hidden)
            keep, write, show, offer = gates.chunk(4, dim=-1)
            memory = torch.sigmoid(keep) * memory + torch.sigmoid(write) * torch.tanh(offer)
            hidden = torch.sigmoid(show) * torch.tanh(memory)
            states.append(hidden)
        return torch.stack(states, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, TIME, DIM), torch.randn(BATCH, DIM), torch.randn(BATCH, DIM)]


def get_init_inputs() -> list[int]:
    return [DIM]
