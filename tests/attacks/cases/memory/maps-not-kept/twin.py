import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.heads = heads
        self._maps = {}

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = torch.softmax((q * (d // self.heads) ** -0.5) @ k.transpose(-1, -2), -1)
        self._maps["attention"] = scores
        self._maps["entropy"] = torch.special.entr(scores).sum(-1)
        return (scores @ v).transpose(1, 2).reshape(b, n, d)
