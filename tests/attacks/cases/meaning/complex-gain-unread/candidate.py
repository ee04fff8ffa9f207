"""No filter: what passes everything changes nothing."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, response):
        return torch.tanh(x)
