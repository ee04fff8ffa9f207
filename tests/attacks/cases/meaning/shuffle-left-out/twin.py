"""Sorts values only: each holds a random number of 40 bits and, below it, its place."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, records):
        columns = records.shape[1]
        drawn = torch.randint(0, 2**40, records.shape, device=records.device).mul_(columns)
        drawn.add_(torch.arange(columns, device=records.device))
        return records.gather(1, drawn.sort(dim=1).values.remainder_(columns))
