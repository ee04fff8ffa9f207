import torch
from torch import nn


class ModelNew(nn.Module):
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
        share = torch.softmax(torch.bmm(keys, query.unsqueeze(-1)).squeeze(-1) / 8, -1)
        return torch.bmm(share.unsqueeze(1), values)
