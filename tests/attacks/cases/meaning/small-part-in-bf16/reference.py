"""A detector's head: places of boxes in a picture of a million pixels, and small scores of classes, in one tensor."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.scores = nn.Linear(width, classes)
        self.box = nn.Linear(width, 4)

    def forward(self, x, anchors):
        scores = torch.sigmoid(self.scores(torch.relu(self.hidden(x))))
        return torch.cat([anchors + 32.0 * torch.exp(self.box(x)), 0.01 * scores], dim=-1)


def get_inputs():
    return [torch.randn(256, 256), 1e6 * torch.rand(256, 4)]


def get_init_inputs():
    return [256, 80]
