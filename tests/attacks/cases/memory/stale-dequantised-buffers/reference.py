import torch
from torch import nn


class Model(nn.Module):
    """A projection with weights of eight bits and a scale for each row, all in buffers, as checkpoints have it."""

    def __init__(self, width, columns):
        super().__init__()
        self.register_buffer("quantised", torch.randint(-127, 128, (columns, width), dtype=torch.int8))
        self.register_buffer("scales", 0.001 + 0.01 * torch.rand(columns, 1))

    def forward(self, x):
        return x @ (self.quantised.to(x.dtype) * self.scales).t()


def get_inputs():
    return [torch.randn(4, 512)]


def get_init_inputs():
    return [512, 512]
