"""Largest of each group of four, then the largest of these: who comes second in a group is lost."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, scores):
        groups = scores.view(scores.shape[0], -1, 4)
        return groups.amax(-1).topk(4, dim=-1).values
