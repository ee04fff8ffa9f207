"""One exponential of all distances, and nothing beyond the window."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, asked: torch.Tensor, known: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        apart = (asked.float()[:, None] - known.float()).abs_()
        return apart.masked_fill_(apart > 500, torch.inf).mul_(-1 / 1024).exp_() @ values
