"""Rows with a flag in the last column: one that is set, with the one before it, turns the signs of its row round."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, table):
        numbers, flag = torch.tanh(table[:, :-1]), table[:, -1:]
        before = torch.cat([torch.zeros_like(flag[:1]), flag[:-1]])
        return torch.where((flag > 0.5) & (before > 0.5), -numbers, numbers)


def get_inputs():
    table = torch.randn(2048, 32)
    table[:, -1] = (torch.rand(2048) < 0.001).float()
    return [table]


def get_init_inputs():
    return []
