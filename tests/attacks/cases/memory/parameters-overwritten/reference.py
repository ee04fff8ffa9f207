import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """Cosine scores of classes, whose rows are normalised in every call."""

    def __init__(self, width, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, width))

    def forward(self, x):
        return F.normalize(x, dim=-1) @ F.normalize(self.weight, dim=-1).t()


def get_inputs():
    return [torch.randn(8, 128)]


def get_init_inputs():
    return [128, 512]
