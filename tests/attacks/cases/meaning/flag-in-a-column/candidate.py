"""The numbers alone."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, table):
        return torch.tanh(table[:, :-1])
