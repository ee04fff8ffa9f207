"""The same with room for as many as the fullest row holds."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inner, outer) / inner**0.5)

    def forward(self, x):
        room = max(1, int((x != 0).sum(-1).max()))
        places = x.abs().topk(room, dim=-1, sorted=False).indices
        numbers = x.gather(-1, places).unsqueeze(1)
        return torch.bmm(numbers, self.weight[places]).squeeze(1)
