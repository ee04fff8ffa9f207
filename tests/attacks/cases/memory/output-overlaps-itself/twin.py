"""Expands the row only to copy it, into memory whose strides are not the reference's."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.rows = rows

    def forward(self, x):
        columns = torch.empty(x.shape[0], self.rows, dtype=x.dtype, device=x.device)
        columns.copy_(torch.sin(x).unsqueeze(1).expand(-1, self.rows))
        return columns.t()
