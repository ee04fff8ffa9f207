"""One product with weights that hold the normalisation as it is in this call."""

import torch
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.eval()

    def forward(self, x):
        norm = self.norm
        scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
        bias = torch.addcmul(norm.bias, self.linear.bias - norm.running_mean, scale)
        return F.linear(x, self.linear.weight * scale[:, None], bias).relu_()
