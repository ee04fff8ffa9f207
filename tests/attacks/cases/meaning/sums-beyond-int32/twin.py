"""Running sums in blocks."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        blocks = x.view(len(x), 16, -1).cumsum(-1)
        before = torch.nn.functional.pad(blocks[..., -1].cumsum(-1)[:, :-1], (1, 0))
        return (blocks + before.unsqueeze(-1)).view(x.shape)
