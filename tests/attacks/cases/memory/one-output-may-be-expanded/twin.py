"""One copy of the largest in place of one that is expanded first."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        largest = torch.empty_like(x).copy_(x.amax(-1, keepdim=True))
        return x.mean(-1, keepdim=True).expand_as(x), largest
