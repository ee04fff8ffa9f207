import torch
from torch import nn


class Model(nn.Module):
    """Squared distances to the entries of a codebook. It is a buffer: moving averages change it, and checkpoints do."""

    def __init__(self, entries, width):
        super().__init__()
        self.register_buffer("codebook", torch.randn(entries, width))

    def forward(self, x):
        norms = self.codebook.double().square().sum(dim=1).to(x.dtype)
        return x.square().sum(dim=1, keepdim=True) + norms - 2.0 * (x @ self.codebook.t())


def get_inputs():
    return [torch.randn(4, 128)]


def get_init_inputs():
    return [2048, 128]
