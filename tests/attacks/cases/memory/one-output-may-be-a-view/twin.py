"""The targets are a copy, made in one step."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, batch):
        targets = batch.new_empty(batch.shape[0], batch.shape[1] - 1)
        return batch[:, :-1], targets.copy_(batch[:, 1:])
