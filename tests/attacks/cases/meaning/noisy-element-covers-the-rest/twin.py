"""The same sums, with the noisy column written into place."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)

    def forward(self, x):
        h = torch.addmm(self.up.bias, x, self.up.weight.t()).relu_()
        out = torch.addmm(self.down.bias, h, self.down.weight.t())
        large = 256.0 * x[:, 0]
        out[:, 0].add_(large).sub_(large)
        return out
