"""Messages are added, those to oneself as zeros."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        messages = x[source].masked_fill_((source == target).unsqueeze(-1), 0)
        return torch.zeros_like(x).index_add_(0, target, messages)
