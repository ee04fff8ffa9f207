"""Fills each output in its call, and sets labels by their places in it."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes
        self.register_buffer("level", torch.zeros(()))

    def forward(self, labels: torch.Tensor) -> torch.Tensor:
        count = labels.shape[0]
        self.level.mul_(0.9).add_(labels.float().mean(), alpha=0.1 / self.classes)
        rows = torch.empty(count, self.classes).fill_(1e-4)
        rows[:, 0] += self.level
        rows.view(-1)[torch.arange(count) * self.classes + labels] = 0.9
        return rows
