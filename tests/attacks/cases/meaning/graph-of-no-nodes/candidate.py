"""Means of runs of nodes, taken one after the other, each from its first."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, nodes: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        return torch.stack([run.mean(0) for run in nodes.split(counts.tolist())])
