import torch
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self, width, window):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.cache = [(torch.zeros(8, window, width), torch.zeros(8, window, width))]

    def forward(self, x):
        query, key, value = self.qkv(x).chunk(3, -1)
        score = (key * query).sum(-1, keepdim=True) / 8
        share = torch.softmax(F.pad(score, (self.cache[0][0].shape[1] - 1, 0)), -1)[:, -1:]
        return (share * value).unsqueeze(1)
