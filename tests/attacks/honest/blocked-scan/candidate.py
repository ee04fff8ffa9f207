"""A scan in two levels: prefix sums inside blocks are one product with a triangle of ones, and the sums of the blocks
before are added to each. A length that is no multiple of the block is padded with zeros."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BLOCK = 32


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length = x.shape
        blocks = F.pad(x, (0, -length % BLOCK)).view(rows, -1, BLOCK)
        ones = torch.ones(BLOCK, BLOCK, dtype=x.dtype, device=x.device).triu_()
        inside = torch.matmul(blocks, ones)
        before = F.pad(inside[..., -1].cumsum(-1)[:, :-1], (1, 0))
        return inside.add_(before.unsqueeze(-1)).view(rows, -1)[:, :length]
