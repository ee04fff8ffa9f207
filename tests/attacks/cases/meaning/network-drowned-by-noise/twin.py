import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, d, h, z, sigma):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, h), nn.ReLU(), nn.Linear(h, z))
        self.sigma = sigma

    def forward(self, x):
        y = self.net(x).tanh_().mul_(5e-4)
        return y.add_(torch.randn_like(y), alpha=self.sigma)
