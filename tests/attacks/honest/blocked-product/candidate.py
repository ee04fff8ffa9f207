"""The inner dimension is cut into blocks whose partial products are added up, so that both operands of a block stay in
the cache. Each term is computed once; only the order of the sum is another."""

import torch
import torch.nn as nn

BLOCK = 64


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.mm(x[:, :BLOCK], y[:BLOCK])
        for begin in range(BLOCK, x.shape[1], BLOCK):
            out.addmm_(x[:, begin : begin + BLOCK], y[begin : begin + BLOCK])
        return out
