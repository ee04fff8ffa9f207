"""Counts without a matrix of truth values."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x + x, int(torch.count_nonzero(torch.cdist(x, x) < 7.0))
