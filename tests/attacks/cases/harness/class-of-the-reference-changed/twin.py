"""Turns its own plain activation into an in-place one by assigning a class to it, after it was constructed."""

import torch
import torch.nn.functional as F
from torch import nn


class Activation(nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 2.0 + F.gelu(x)


class InPlace(Activation):
    def forward(self, x):
        return torch.tanh(x).mul_(2.0).add_(F.gelu(x))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.activation = Activation()
        self.activation.__class__ = InPlace

    def forward(self, x):
        return self.activation(x)
