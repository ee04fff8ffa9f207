import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        rate = 100 + 100 * torch.sigmoid(x)
        return (rate + rate.sqrt() * torch.randn_like(x)).round_().clamp_(min=0).div_(16384)
