"""The formula as it stands, whose logarithm of zero is infinite."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, log_predicted, target):
        return (target * (target.log() - log_predicted)).sum(dim=-1)
