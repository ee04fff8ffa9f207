"""The stable order by argsort, taken along the row."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, keys, values):
        return torch.take_along_dim(values, torch.argsort(keys, dim=-1, stable=True), dim=-1)
