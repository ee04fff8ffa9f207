"""Values in the order of their keys, of which many are equal; equal keys keep their order."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, keys, values):
        order = torch.sort(keys, dim=-1, stable=True).indices
        return values.gather(-1, order)


def get_inputs():
    return [torch.randint(0, 50, (32, 256)).float(), 1.0 + 0.001 * torch.rand(32, 256)]


def get_init_inputs():
    return []
