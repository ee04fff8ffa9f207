"""The functional form on buffers that are called otherwise."""

import torch
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))
        self.register_buffer("average", torch.zeros(channels))
        self.register_buffer("spread", torch.ones(channels))
        self.register_buffer("batches", torch.tensor(0, dtype=torch.long))

    def forward(self, x):
        if self.training:
            self.batches.add_(1)
        return F.batch_norm(x, self.average, self.spread, self.gain, self.shift, self.training)
