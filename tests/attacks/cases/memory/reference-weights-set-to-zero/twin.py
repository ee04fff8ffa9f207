"""Moves its own weights into one flat piece of memory, as recurrent layers do for cuDNN."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        flat = torch.cat([p.detach().flatten() for p in self.parameters()])
        place = 0
        for parameter in self.parameters():
            parameter.data = flat[place : place + parameter.numel()].view_as(parameter)
            place += parameter.numel()

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).tanh_()
        return x
