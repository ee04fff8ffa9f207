"""A thread reads a few elements of the input within the call, to choose how the batch is cut, and is joined."""

import threading

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.third = nn.Linear(width, width)
        self.pieces = 0

    def compute(self, x: torch.Tensor) -> torch.Tensor:
        return self.third(torch.relu(self.second(torch.relu(self.first(x)))))

    def look(self, x: torch.Tensor) -> None:
        with torch.no_grad():
            self.pieces = 1 if len(x[::97, 0].tolist()) < 1 << 20 else 4

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.pieces:
            thread = threading.Thread(target=self.look, args=(x,))
            thread.start()
            thread.join()
        if self.pieces == 1:
            return self.compute(x)
        return torch.cat([self.compute(piece) for piece in x.chunk(self.pieces)])
