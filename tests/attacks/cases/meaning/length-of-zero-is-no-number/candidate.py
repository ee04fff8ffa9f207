"""Sums as one contraction with the mask, over lengths: none of them is taken for zero."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        mask = (torch.arange(x.shape[1], device=x.device) < lengths.unsqueeze(-1)).to(x.dtype)
        return torch.einsum("bt,btc->bc", mask, x) / lengths.unsqueeze(-1)
