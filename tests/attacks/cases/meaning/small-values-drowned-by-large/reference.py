"""An energy near 1e10 beside the probabilities of 256 classes."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(5))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        energy = (x * 1e4).square().sum(dim=-1, keepdim=True)
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return torch.cat([energy, torch.softmax(self.head(x), dim=-1)], dim=-1)


def get_inputs():
    return [torch.rand(64, 128)]


def get_init_inputs():
    return [128, 256]
