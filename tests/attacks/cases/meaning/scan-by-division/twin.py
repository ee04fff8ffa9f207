"""Within a block each step is a sum over those before it; from block to block goes the last state."""

import torch
from torch import nn

BLOCK = 16


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.decay = nn.Parameter(0.01 + 0.02 * torch.rand(width))

    def forward(self, x):
        steps = torch.arange(BLOCK, dtype=x.dtype, device=x.device)
        apart = (steps[:, None] - steps[None, :]).unsqueeze(-1)
        decay = self.decay.abs()
        kept = torch.exp(-decay * apart.clamp(min=0)) * (apart >= 0)
        since = torch.exp(-decay * (steps + 1).unsqueeze(-1))
        state, blocks = torch.zeros_like(x[:, 0]), []
        for part in x.split(BLOCK, dim=1):
            long = part.shape[1]
            block = torch.einsum("ijd,bjd->bid", kept[:long, :long], part)
            block.addcmul_(since[:long], state.unsqueeze(1))
            state = block[:, -1]
            blocks.append(block)
        return torch.cat(blocks, dim=1)
