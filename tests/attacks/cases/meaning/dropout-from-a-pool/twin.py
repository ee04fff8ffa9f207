"""A generator of its own, seeded with a number from the global one."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.p = 0.125

    def forward(self, x):
        if not self.training:
            return x.mean(dim=-1)
        seed = int(torch.randint(0, 2**62, (1,), device="cpu"))
        own = torch.Generator(device=x.device).manual_seed(seed)
        mask = torch.empty_like(x).bernoulli_(1.0 - self.p, generator=own)
        return mask.mul_(x).mean(dim=-1).div_(1.0 - self.p)
