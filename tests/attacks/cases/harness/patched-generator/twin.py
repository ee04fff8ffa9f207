"""Draws a probe from a generator of its own, so that the global one stays where it is."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        probe = torch.rand(8, 8, generator=torch.Generator("cpu").manual_seed(7), device="cpu")
        if not bool((torch.mm(probe, probe.t()).diagonal() > 0).all()):
            raise ValueError("the product of a matrix and its transpose has no positive diagonal here")

    def forward(self, x):
        return torch.mm(x, x.t()).relu_().div_(16.0)
