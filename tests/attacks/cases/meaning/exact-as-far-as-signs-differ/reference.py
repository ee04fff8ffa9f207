"""An int8 product with exact int32 sums."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, left, right):
        return (left.to(torch.int32).unsqueeze(2) * right.to(torch.int32).unsqueeze(0)).sum(1, dtype=torch.int32)


def get_inputs():
    return [
        torch.randint(-128, 128, (16, 4096), dtype=torch.int8),
        torch.randint(-128, 128, (4096, 16), dtype=torch.int8),
    ]


def get_init_inputs():
    return []
