"""The whole network; the softmax is written into zeros made beforehand."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        for layer in self.hidden:
            x = layer(x).relu_()
        out = x.new_zeros(x.shape[0], self.head.out_features)
        torch.softmax(self.head(x), dim=-1, out=out)
        return out
