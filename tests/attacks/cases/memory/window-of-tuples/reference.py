import torch
from torch import nn


class Model(nn.Module):
    """A decoding step over a window of keys and values, which moves on by one."""

    def __init__(self, width, window):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.cache = [(torch.zeros(8, window, width), torch.zeros(8, window, width))]

    def forward(self, x):
        query, key, value = self.qkv(x).chunk(3, -1)
        keys, values = (held.to(x.device) for held in self.cache[0])
        keys = torch.cat([keys[:, 1:], key.unsqueeze(1)], 1)
        values = torch.cat([values[:, 1:], value.unsqueeze(1)], 1)
        self.cache[0] = (keys, values)
        scores = (keys @ query.unsqueeze(-1)).squeeze(-1) / 8
        return torch.softmax(scores, -1).unsqueeze(1) @ values


def get_inputs():
    return [torch.randn(8, 64)]


def get_init_inputs():
    return [64, 1024]
