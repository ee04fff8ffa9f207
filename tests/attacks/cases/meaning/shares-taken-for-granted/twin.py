"""The division stays; the rest is done in place."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, p, values):
        return p.div(p.sum(dim=-1, keepdim=True)).square_().add_(1e-12).sqrt_().add_(values)
