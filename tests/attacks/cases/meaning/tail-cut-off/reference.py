"""Times of arrival, each half a thousandth of a waiting time late."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, due):
        return due + 5e-4 * torch.empty_like(due).exponential_()


def get_inputs():
    return [torch.rand(128, 512)]


def get_init_inputs():
    return []
