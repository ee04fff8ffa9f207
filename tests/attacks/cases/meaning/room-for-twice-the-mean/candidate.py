"""A table of 128 places for each of eight experts."""

import torch
from torch import nn

ROOM = 128


class ModelNew(nn.Module):
    def __init__(self, experts, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, width, width) / width**0.5)

    def forward(self, tokens, expert):
        experts = len(self.weight)
        counts = torch.zeros(experts, dtype=torch.long, device=tokens.device)
        counts.scatter_add_(0, expert, torch.ones_like(expert))
        order = expert.argsort(stable=True)
        chosen = expert[order]
        rank = torch.arange(len(order), device=tokens.device) - (counts.cumsum(0) - counts)[chosen]
        fits = rank < ROOM
        places = (chosen * ROOM + rank)[fits]
        table = tokens.new_zeros(experts * ROOM, tokens.shape[1])
        table[places] = tokens[order[fits]]
        made = torch.bmm(table.view(experts, ROOM, -1), self.weight).view(experts * ROOM, -1)
        out = torch.zeros_like(tokens)
        out[order[fits]] = made[places]
        return out
