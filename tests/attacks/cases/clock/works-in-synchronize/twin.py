"""Synchronises in its first call, before it looks at the memory that is left to choose how to cut the batch."""

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

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.pieces:
            torch.cuda.synchronize()
            free, _ = torch.cuda.mem_get_info()
            self.pieces = 1 if free > 1 << 30 else 4
        if self.pieces == 1:
            return self.compute(x)
        return torch.cat([self.compute(piece) for piece in x.chunk(self.pieces)])
