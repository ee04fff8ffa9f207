"""Takes the statistics of the batch and keeps the running ones."""

from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, x):
        n = self.norm
        if n.training:
            n.num_batches_tracked.add_(1)
        return F.batch_norm(
            x, n.running_mean, n.running_var, n.weight, n.bias, n.training, momentum=n.momentum, eps=n.eps
        ).relu_()
