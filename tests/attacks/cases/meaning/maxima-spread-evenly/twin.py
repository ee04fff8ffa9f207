"""The four groups with the largest maxima hold the four largest elements."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, scores):
        groups = scores.view(scores.shape[0], -1, 4)
        found = groups.amax(-1).topk(4, dim=-1).indices
        held = groups.gather(1, found.unsqueeze(-1).expand(-1, -1, 4))
        return held.flatten(1).topk(4, dim=-1).values
