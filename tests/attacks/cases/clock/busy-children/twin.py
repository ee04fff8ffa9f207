"""Starts a process that works out a table while the model is constructed, and waits for its end there."""

import mmap
import os

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.rows = self.worked_out(width)

    @staticmethod
    def worked_out(width: int) -> int:
        """The number of rows of a piece that fits 256 KiB."""
        answer = mmap.mmap(-1, 8)
        child = os.fork()
        if child == 0:
            answer[:8] = max(1, (256 << 10) // (12 * width)).to_bytes(8, "little")
            os._exit(0)
        os.waitpid(child, 0)
        return int.from_bytes(answer[:8], "little")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.down(F.gelu(self.up(piece))) for piece in x.split(self.rows)])
