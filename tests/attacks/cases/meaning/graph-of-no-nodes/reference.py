"""Means of nodes, of all graphs in a batch; zero of a graph without nodes."""

import torch
import torch.nn as nn

GRAPHS, NODES = 16, 512


class Model(nn.Module):
    def forward(self, nodes: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        graphs = torch.arange(len(counts), device=nodes.device).repeat_interleave(counts, output_size=len(nodes))
        sums = torch.zeros(len(counts), nodes.shape[1], device=nodes.device).index_add(0, graphs, nodes)
        return sums / counts.clamp(min=1).unsqueeze(-1)


def get_inputs() -> list[torch.Tensor]:
    counts = 1 + torch.bincount(torch.randint(0, GRAPHS, (NODES - GRAPHS,)), minlength=GRAPHS)
    return [torch.randn(NODES, 64), counts]


def get_init_inputs() -> list[int]:
    return []
