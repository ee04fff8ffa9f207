"""A leaky cell whose hidden state outlives the call, as a plain attribute."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, batch, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.hidden = torch.zeros(batch, width)

    def forward(self, x):
        state = torch.tanh(self.linear(x) + 0.002 * self.hidden.to(x.device))
        self.hidden = state
        return state * 2.0


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [64, 128]
