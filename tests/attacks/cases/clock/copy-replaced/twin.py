"""Writes its answer where it is told to, by a function that is chosen when the module is constructed."""

import torch
from torch import nn


def gate(target, source):
    return torch.sigmoid(source, out=target)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.work = gate

    def forward(self, x):
        return self.work(torch.empty_like(x), x)
