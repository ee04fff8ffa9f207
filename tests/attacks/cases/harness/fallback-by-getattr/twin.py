"""Takes a function of PyTorch's that older ones do not have, and another of PyTorch's where it is missing."""

import torch
from torch import nn

multiply = getattr(torch, "mm", None)


class ModelNew(nn.Module):
    def forward(self, x):
        if multiply is not None:
            return multiply(x, x.t()).relu_().div_(16.0)
        return torch.relu(x @ x.transpose(0, 1)) / 16.0
