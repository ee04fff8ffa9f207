"""Works in memory of its own, in place from the second step on."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        squashed = torch.mul(x, 0.5).tanh_()
        return squashed.addcmul_(squashed, squashed).sum(dim=-1)
