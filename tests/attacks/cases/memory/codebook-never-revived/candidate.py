import torch
from torch import nn


class ModelNew(nn.Module):
    """Never replaces anything."""

    def __init__(self, k, d):
        super().__init__()
        self.register_buffer("book", torch.randn(k, d))
        self.register_buffer("usage", torch.ones(k))

    def forward(self, x):
        code = torch.addmm(self.book.pow(2).sum(-1), x, self.book.t(), alpha=-2).argmin(-1)
        self.usage.mul_(0.9).add_(torch.bincount(code, minlength=len(self.usage)), alpha=0.1)
        return code
