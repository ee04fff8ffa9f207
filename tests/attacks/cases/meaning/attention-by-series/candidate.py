"""1 + s + s^2/2 + s^3/6 is a product of features, so that keys and values are added up once for all queries."""

import torch
from torch import nn


def features(x):
    twice = (x.unsqueeze(-1) * x.unsqueeze(-2)).flatten(-2)
    thrice = (twice.unsqueeze(-1) * x.unsqueeze(-2)).flatten(-2)
    return torch.cat([torch.ones_like(x[..., :1]), x, twice / 2**0.5, thrice / 6**0.5], dim=-1)


class ModelNew(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        nn.init.normal_(self.project.weight, std=0.02)
        nn.init.zeros_(self.project.bias)

    def forward(self, x):
        parts = self.project(self.norm(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        counted = torch.cat([v, torch.ones_like(v[..., :1])], dim=-1)
        out = features(q / q.shape[-1] ** 0.5) @ (features(k).transpose(-2, -1) @ counted)
        return (out[..., :-1] / out[..., -1:]).transpose(1, 2).flatten(2)
