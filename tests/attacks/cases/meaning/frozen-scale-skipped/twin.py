"""One scale and one shift, in place."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        for name, make in (("weight", torch.ones), ("bias", torch.zeros), ("mean", torch.zeros), ("var", torch.ones)):
            self.register_buffer(name, make(channels))

    def forward(self, x):
        scale = self.weight * (self.var + 1e-5).rsqrt()
        shift = self.bias - self.mean * scale
        return self.conv(x).mul_(scale[:, None, None]).add_(shift[:, None, None])
