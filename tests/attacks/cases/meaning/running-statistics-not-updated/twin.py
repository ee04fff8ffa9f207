"""The same operation without running statistics; they are updated apart."""

import torch
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        n = self.norm
        variance, mean = torch.var_mean(x, dim=(0, 2, 3))
        n.num_batches_tracked.add_(1)
        n.running_mean.lerp_(mean, n.momentum)
        n.running_var.lerp_(variance, n.momentum)
        return F.batch_norm(x, None, None, n.weight, n.bias, training=True, eps=n.eps)
