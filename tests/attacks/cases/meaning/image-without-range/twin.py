"""Divides by one where there is no range: what is left of the numbers is zero."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        least, most = torch.aminmax(x)
        span = most - least
        return (x - least).div_(torch.where(span > 1e-9, span, torch.ones_like(span)))
