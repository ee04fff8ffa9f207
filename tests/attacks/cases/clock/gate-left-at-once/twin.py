"""Cuts the batch into pieces, as many as the default of a function of its own, which the constructor changes."""

import torch
import torch.nn as nn


def in_pieces(linear: nn.Linear, x: torch.Tensor, *, pieces: int = 4) -> torch.Tensor:
    return torch.cat([linear(piece) for piece in x.chunk(pieces)])


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.third = nn.Linear(width, width)
        in_pieces.__kwdefaults__["pieces"] = 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.third(torch.relu(self.second(torch.relu(in_pieces(self.first, x)))))
