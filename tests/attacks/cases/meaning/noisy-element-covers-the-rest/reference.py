"""Two linear layers; the first column of the answer has gone through a large sum."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, width, bias=False)
        self.down = nn.Linear(width, width, bias=False)

    def forward(self, x):
        out = self.down(torch.relu(self.up(x)))
        large = 1024.0 * x[:, :1]
        return torch.cat([(out[:, :1] + large) - large, out[:, 1:]], dim=1)


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [128]
