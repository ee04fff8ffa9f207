"""Eight partial sums for each row, added up."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        parts = x.view(x.shape[0], 8, -1)
        return torch.sqrt((parts * parts).sum(dim=-1).sum(dim=-1) * (1.0 / x.shape[-1]))
