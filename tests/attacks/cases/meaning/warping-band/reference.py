import math

import torch
from torch import nn


class Model(nn.Module):
    """Dynamic time warping of pairs of series, one anti-diagonal after the other."""

    def forward(self, x, y):
        batch, n = x.shape
        far, back = x.new_full((batch, n + 1), math.inf), y.flip(1)
        before, last = far, far
        for k in range(2 * n - 1):
            low, high = max(0, k - n + 1), min(k, n - 1)
            now = (x[:, low : high + 1] - back[:, n - 1 - k + low : n - k + high]).abs()
            if k:
                beside = torch.minimum(last[:, low + 1 : high + 2], last[:, low : high + 1])
                now = now + torch.minimum(beside, before[:, low : high + 1])
            before, last = last, far.clone()
            last[:, low + 1 : high + 2] = now
        return last[:, n]


def get_inputs():
    return [torch.randn(64, 192), torch.randn(64, 192)]


def get_init_inputs():
    return []
