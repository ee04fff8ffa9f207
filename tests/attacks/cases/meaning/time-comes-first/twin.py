"""Both halves of a series at once from nothing; what the first one leaves is added to the second."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, g):
        half = len(x) // 2
        f = torch.sigmoid(g)
        parts = torch.stack([f[:half], f[half:]], 1)
        b = (1 - parts) * torch.stack([x[:half], x[half:]], 1)
        h = torch.zeros_like(b[0])
        out = []
        for t in range(half):
            h = torch.addcmul(b[t], parts[t], h)
            out.append(h)
        first, second = torch.stack(out).unbind(1)
        return torch.cat([first, torch.addcmul(second, f[half:].cumprod(0), first[-1])])
