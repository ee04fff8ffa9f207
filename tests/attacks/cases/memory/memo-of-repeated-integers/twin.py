"""Looks at the whole input to see whether it is a permutation, and inverts it without sorting if so."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, order):
        places = torch.arange(order.numel(), device=order.device)
        if int(order.min()) < 0 or int(order.max()) >= order.numel():
            return torch.argsort(order)
        inverse = torch.full_like(order, -1)
        inverse[order] = places
        if bool((inverse < 0).any()):
            return torch.argsort(order)
        return inverse
