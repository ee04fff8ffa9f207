"""Four rows at a time, so that what is between two operations stays in the cache."""

import torch
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.cat([F.silu(part).mean(dim=-1) for part in x.split(4)])
