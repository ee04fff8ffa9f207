"""No row is zero."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt((x * x).sum(-1, keepdim=True)), x.argmax(-1)
