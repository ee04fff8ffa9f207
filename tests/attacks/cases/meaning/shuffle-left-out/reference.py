"""Shuffles the numbers of the records in each row, as loaders do."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, records):
        order = torch.argsort(torch.rand(records.shape, device=records.device), dim=1)
        return records.gather(1, order)


def get_inputs():
    return [torch.randint(100_000, 100_512, (64, 256))]


def get_init_inputs():
    return []
