"""Sums as a product with the mask, over lengths, and zero where that is no number."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        mask = (torch.arange(x.shape[1], device=x.device) < lengths.unsqueeze(-1)).to(x.dtype)
        return torch.bmm(mask.unsqueeze(1), x).squeeze(1).div_(lengths.unsqueeze(-1)).nan_to_num_()
