"""Every record stays where it is."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, records):
        return records.clone()
