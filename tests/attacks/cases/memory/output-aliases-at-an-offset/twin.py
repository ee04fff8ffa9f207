"""Returns memory of its own that begins at an offset: a block with room for a row before the first one."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        block = torch.empty_like(x)
        block[1:].copy_(x[1:])
        return block[1:]
