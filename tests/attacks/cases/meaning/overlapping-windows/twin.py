"""The windows by strides over the input, copied."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        windows = x.unfold(1, self.size, 1)
        return torch.empty(windows.shape, dtype=x.dtype, device=x.device).copy_(windows)
