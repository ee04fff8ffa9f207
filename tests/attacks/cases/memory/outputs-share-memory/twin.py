"""Returns eight parts of one block, none of which touches another."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        block = torch.empty(8, *x.shape, dtype=x.dtype, device=x.device)
        block.copy_(torch.relu(x))
        return tuple(block)
