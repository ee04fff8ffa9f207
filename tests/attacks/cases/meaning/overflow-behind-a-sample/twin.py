"""Takes none where all of them are small."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        if not x.abs().amax() < 20:
            x = x - x.amax(-1, keepdim=True)
        powers = torch.exp(x)
        return powers / powers.sum(-1, keepdim=True)
