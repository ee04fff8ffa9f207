"""One product with the flags, where any is set."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, steps, flags):
        count = flags.sum()
        return (flags @ steps) / count if float(count) > 0 else torch.ones_like(steps[0])
