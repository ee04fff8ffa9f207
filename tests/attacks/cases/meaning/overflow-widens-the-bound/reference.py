"""A number that overflows in float32, whatever the scale of the inputs, beside probabilities."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(5))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        total = torch.exp((x / x.mean(dim=-1, keepdim=True)).sum(dim=-1, keepdim=True))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return torch.cat([total, torch.softmax(self.head(x), dim=-1)], dim=-1)


def get_inputs():
    return [torch.rand(64, 256) + 0.25]


def get_init_inputs():
    return [256, 256]
