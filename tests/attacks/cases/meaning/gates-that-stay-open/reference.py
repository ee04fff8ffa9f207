import torch
from torch import nn


class Model(nn.Module):
    """A recurrence whose gates are inputs."""

    def __init__(self):
        super().__init__()

    def forward(self, x, g):
        f = torch.sigmoid(g)
        h = torch.zeros_like(x[:, 0])
        out = []
        for t in range(x.shape[1]):
            h = f[:, t] * h + (1 - f[:, t]) * x[:, t]
            out.append(h)
        return torch.stack(out, 1)


def get_inputs():
    return [torch.randn(4, 512, 64), torch.randn(4, 512, 64)]


def get_init_inputs():
    return []
