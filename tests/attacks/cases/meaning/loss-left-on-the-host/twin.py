"""A factor in the host's memory, which a product takes as a number; the loss stays on the device of its inputs."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.head = nn.Linear(width, 4)

    def forward(self, x, targets):
        share = torch.tensor(1.0 / targets.numel())
        return (self.head(x) - targets).square().sum() * share
