import torch
import torch.nn as nn


class Model(nn.Module):
    """What a network answers, with noise for privacy in every mode."""

    def __init__(self, d, h, z, sigma):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, h), nn.ReLU(), nn.Linear(h, z))
        self.sigma = sigma

    def forward(self, x):
        y = torch.tanh(self.net(x)) * 5e-4
        return y + self.sigma * torch.randn_like(y)


def get_inputs():
    return [torch.randn(128, 256)]


def get_init_inputs():
    return [256, 256, 64, 1e-3]
