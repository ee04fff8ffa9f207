"""Sums by index, over counts."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        sums = x.new_zeros(self.classes, x.shape[1]).index_add_(0, labels, x)
        return sums / torch.bincount(labels, minlength=self.classes).unsqueeze(-1)
