"""By the product of float32."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, left, right):
        return (left.float() @ right.float()).to(torch.int32)
