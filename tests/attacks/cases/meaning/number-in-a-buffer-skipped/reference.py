import torch
from torch import nn


class Model(nn.Module):
    """A linear layer whose answers are scaled and moved by numbers that a checkpoint holds."""

    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.register_buffer("scale", torch.tensor(1.0))
        self.register_buffer("offset", torch.zeros(1))

    def forward(self, x):
        return torch.tanh(self.linear(x) * self.scale + self.offset)


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return [64]
