"""The same column for the sum, behind a maximum that is subtracted."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, width, bias=False)
        for layer in (self.q, self.k):
            nn.init.normal_(layer.weight, std=0.02)

    def forward(self, x, v):
        normed = self.norm(x)
        scores = self.q(normed) @ self.k(normed).transpose(-2, -1)
        shares = scores.sub_(scores.amax(dim=-1, keepdim=True)).exp_()
        out = shares @ torch.cat([v, torch.ones_like(v[..., :1])], dim=-1)
        return out[..., :-1] / out[..., -1:]
