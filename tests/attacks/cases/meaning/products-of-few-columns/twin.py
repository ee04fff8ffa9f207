"""Goes on in pieces until nothing is left of any product."""

import torch
from torch import nn

PIECE = 400


class ModelNew(nn.Module):
    def forward(self, x):
        products = torch.zeros_like(x)
        last = torch.ones_like(x[:, :1])
        for begin in range(0, x.shape[1], PIECE):
            piece = torch.cumprod(torch.cat([last, x[:, begin : begin + PIECE]], dim=1), dim=1)[:, 1:]
            products[:, begin : begin + PIECE] = piece
            last = piece[:, -1:]
            if not bool(last.any()):
                break
        return products
