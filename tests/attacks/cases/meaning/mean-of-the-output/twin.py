"""The same function in fewer steps; the constant that is folded is 1/n."""

import torch
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def forward(self, x):
        return F.silu(x).add_(torch.cos(x)).sum(dim=-1) * (1.0 / x.shape[-1])
