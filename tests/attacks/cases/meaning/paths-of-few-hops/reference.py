import torch
from torch import nn


class Model(nn.Module):
    """Lengths of the shortest paths from the first node of each graph, by as many steps as a path may have edges."""

    def forward(self, edges):
        lengths = edges.abs() + 0.01
        far = lengths[:, 0]
        for _ in range(lengths.shape[1] - 2):
            far = torch.minimum(far, (far.unsqueeze(2) + lengths).amin(1))
        return far


def get_inputs():
    return [torch.randn(40, 64, 64)]


def get_init_inputs():
    return []
