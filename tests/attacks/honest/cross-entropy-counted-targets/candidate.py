"""Takes the score of each target out of its row, and counts those that are no padding."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        kept = target != 0
        losses = scores.logsumexp(dim=-1) - scores.gather(1, target.unsqueeze(1)).squeeze(1)
        return (losses * kept).sum() / kept.sum()
