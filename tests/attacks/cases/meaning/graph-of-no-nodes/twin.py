"""Means of runs of nodes, taken one after the other; zero of none."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, nodes: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        runs = nodes.split(counts.tolist())
        return torch.stack([run.mean(0) if len(run) else torch.zeros_like(nodes[0]) for run in runs])
