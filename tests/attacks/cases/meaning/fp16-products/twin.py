"""Casts too, to more precision than was asked for."""

from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        x = x.double()
        for layer in self.layers[:-1]:
            x = F.linear(x, layer.weight.double(), layer.bias.double()).relu_()
        return F.linear(x, self.layers[-1].weight.double(), self.layers[-1].bias.double()).float()
