"""Something is there in each row."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        valid = x > -9000.0
        return (x * valid).sum(-1) / valid.sum(-1)
