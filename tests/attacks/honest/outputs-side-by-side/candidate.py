"""One product with weights that are joined whenever one of them was written to; what it gives is parted by views."""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.written, self.joined = None, None

    def forward(self, x):
        parts = (self.query, self.key, self.value)
        written = [(t.data_ptr(), t._version) for part in parts for t in (part.weight, part.bias)]
        if written != self.written:
            self.written = written
            self.joined = torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts])
        return F.linear(x, *self.joined).chunk(3, -1)
