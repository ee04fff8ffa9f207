"""The cache that is handed in is changed in place, because the reference changes it so. The scores are one batched
product over the filled part."""

import torch
import torch.nn as nn

POSITION = 40


class ModelNew(nn.Module):
    def forward(self, query: torch.Tensor, key: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        cache.select(1, POSITION).copy_(key)
        filled = cache.narrow(1, 0, POSITION + 1)
        scores = torch.bmm(filled, query.mul(query.shape[-1] ** -0.5).unsqueeze(-1)).squeeze(-1)
        return torch.softmax(scores, dim=-1)
