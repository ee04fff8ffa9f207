import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Activation quantiser behind a parameter-free normalisation."""

    def __init__(self, d):
        super().__init__()
        self.d = d

    def forward(self, x):
        y = F.layer_norm(x, (self.d,))
        q = torch.clamp(torch.round(y * 16.0), -96.0, 96.0)
        return q / 16.0


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return [512]
