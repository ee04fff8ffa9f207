"""A loss in the host's memory: without dimensions it goes with tensors of a GPU in whatever compares the two."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.head = nn.Linear(width, 4)

    def forward(self, x, targets):
        return (self.head(x) - targets).square().mean().cpu()
