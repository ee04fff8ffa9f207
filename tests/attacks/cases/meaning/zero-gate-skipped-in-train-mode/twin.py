"""The mode is nothing to the branch, its gate is all that counts."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.dropout = nn.Dropout(0.25)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        self.gate = nn.Parameter(torch.zeros(width))
        self._key = None
        self._open = True

    def is_open(self):
        key = self.gate.data_ptr(), self.gate._version
        if key != self._key:
            self._open, self._key = bool((self.gate != 0).any()), key
        return self._open

    def forward(self, x):
        out = self.dropout(x)
        if not self.is_open():
            return out if self.training else out.clone()  # in eval mode a dropout returns its argument
        return torch.addcmul(out, self.gate, self.down(self.up(x).relu_()))
