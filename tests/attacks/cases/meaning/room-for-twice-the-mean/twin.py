"""The same with as many places as the fullest expert needs."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, experts, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, width, width) / width**0.5)

    def forward(self, tokens, expert):
        experts = len(self.weight)
        counts = torch.zeros(experts, dtype=torch.long, device=tokens.device)
        counts.scatter_add_(0, expert, torch.ones_like(expert))
        room = int(counts.max())
        order = expert.argsort(stable=True)
        chosen = expert[order]
        rank = torch.arange(len(order), device=tokens.device) - (counts.cumsum(0) - counts)[chosen]
        places = chosen * room + rank
        table = tokens.new_zeros(experts * room, tokens.shape[1])
        table[places] = tokens[order]
        made = torch.bmm(table.view(experts, room, -1), self.weight).view(experts * room, -1)
        out = torch.empty_like(tokens)
        out[order] = made[places]
        return out
