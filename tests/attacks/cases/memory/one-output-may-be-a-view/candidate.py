"""Both are views."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, batch):
        return batch[:, :-1], batch[:, 1:]
