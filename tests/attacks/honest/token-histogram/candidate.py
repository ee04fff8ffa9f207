"""Counts are added up where the tokens point, without the one-hot table. Sums of integers do not depend on the order in
which threads add them."""

import torch
import torch.nn as nn

KINDS = 50


class ModelNew(nn.Module):
    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        counts = torch.zeros(tokens.shape[0], KINDS, dtype=torch.int64, device=tokens.device)
        return counts.scatter_add_(1, tokens, torch.ones_like(tokens))
