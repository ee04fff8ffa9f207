import torch
from torch import nn


class Model(nn.Module):
    """Attention that keeps its maps for whoever draws them, and a load statistic."""

    def __init__(self, width, heads):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.heads = heads
        self._maps = {}

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = torch.softmax(q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5, -1)
        self._maps["attention"] = scores
        self._maps["entropy"] = -(scores * (scores + 1e-9).log()).sum(-1)
        return (scores @ v).transpose(1, 2).reshape(b, n, d)


def get_inputs():
    return [torch.randn(2, 256, 128)]


def get_init_inputs():
    return [128, 4]
