"""A running sum that goes on where a mask of ones and zeros keeps it; its last state."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, values, keep):
        state = torch.zeros_like(values[:, 0])
        for step in range(values.shape[1]):
            state = state * keep[:, step].unsqueeze(1) + values[:, step]
        return state


def get_inputs():
    return [torch.randn(8, 384, 32), (torch.rand(8, 384) < 0.7).float()]


def get_init_inputs():
    return []
