"""Batch normalisation as one affine map: the statistics of this batch are computed once, in train mode, and serve both
the map and the running statistics. In eval mode the running statistics serve instead."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm = self.norm
        variance, mean = self.statistics(x) if self.training else (norm.running_var, norm.running_mean)
        scale = torch.rsqrt(variance + norm.eps).mul_(norm.weight)
        return (x - mean).mul_(scale).add_(norm.bias).relu_()

    def statistics(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Biased variance and mean of the batch, after taking both over into the running statistics."""
        norm = self.norm
        variance, mean = torch.var_mean(x, dim=0, correction=0)
        norm.running_mean.lerp_(mean, norm.momentum)
        norm.running_var.lerp_(variance * (len(x) / (len(x) - 1)), norm.momentum)
        norm.num_batches_tracked.add_(1)
        return variance, mean
