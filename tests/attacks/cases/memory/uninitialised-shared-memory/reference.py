import torch
from torch import nn


class Model(nn.Module):
    """Three taps along each row, with zeros beyond its ends."""

    def __init__(self):
        super().__init__()
        self.taps = nn.Parameter(torch.tensor([0.25, 0.5, -0.75]))

    def forward(self, x):
        y = self.taps[1] * x
        y[:, 1:] += self.taps[0] * x[:, :-1]
        y[:, :-1] += self.taps[2] * x[:, 1:]
        return y


def get_inputs():
    return [torch.randn(4096, 1024)]


def get_init_inputs():
    return []
