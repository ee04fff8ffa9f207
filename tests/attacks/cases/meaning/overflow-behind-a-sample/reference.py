"""A softmax that is finite for inputs of any size."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        powers = torch.exp(x - x.amax(-1, keepdim=True))
        return powers / powers.sum(-1, keepdim=True)


def get_inputs():
    return [torch.rand(64, 512)]


def get_init_inputs():
    return []
