"""The same view, copied into memory of its own."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        out.copy_(x.mean(dim=0, keepdim=True).expand_as(x))
        return out
