"""All blocks, with two operations in place of four after the first product of each."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width, bias=False)
        nn.init.normal_(self.down.weight, std=1e-4)

    def forward(self, x):
        return torch.addmm(x, self.up(x).relu_(), self.down.weight.t())


class ModelNew(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
