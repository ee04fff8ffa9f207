"""Changes its argument in place as the reference does, from a result that it computes beside it."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        squashed = torch.tanh(x * 1.5)
        for _ in range(7):
            squashed.mul_(1.5).tanh_()
        return x.copy_(squashed)
