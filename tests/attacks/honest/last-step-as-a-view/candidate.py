"""Each state is written where it belongs."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(width))

    def forward(self, x):
        states, state = torch.empty_like(x), torch.zeros_like(x[:, 0])
        for step in range(x.shape[1]):
            state = torch.addcmul(x[:, step], state, self.gain).tanh_()
            states[:, step] = state
        return states, states[:, -1]
