"""A sum of products, and -9999 where nothing is counted."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        valid = x > -9000.0
        count = valid.sum(-1)
        return torch.where(count > 0, (x * valid).sum(-1) / count.clamp(min=1), -9999.0)
