"""By the product of float64."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, left, right):
        return (left.double() @ right.double()).to(torch.int32)
