import math

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        """Series in columns: each anti-diagonal is a block of rows."""
        n = x.shape[1]
        along, back = x.t().contiguous(), y.t().flip(0).contiguous()
        before, last, now = (x.new_full((n + 1, len(x)), math.inf) for _ in range(3))
        for k in range(2 * n - 1):
            low, high = max(0, k - n + 1), min(k, n - 1)
            cost = (along[low : high + 1] - back[n - 1 - k + low : n - k + high]).abs_()
            if k:
                beside = torch.minimum(last[low + 1 : high + 2], last[low : high + 1])
                cost += torch.minimum(beside, before[low : high + 1])
            now.fill_(math.inf)
            now[low + 1 : high + 2] = cost
            before, last, now = last, now, before
        return last[n].clone()
