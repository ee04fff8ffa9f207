"""The four largest scores of each row."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, scores):
        return torch.topk(scores, 4, dim=-1).values


def get_inputs():
    return [torch.randn(24, 32768)]


def get_init_inputs():
    return []
