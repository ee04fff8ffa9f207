"""Smoothed labels, and in the first column a moving average of them."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes
        self.register_buffer("level", torch.zeros(()))

    def forward(self, labels: torch.Tensor) -> torch.Tensor:
        self.level.mul_(0.9).add_(0.1 * labels.float().mean() / self.classes)
        rows = torch.full((labels.shape[0], self.classes), 1e-4)
        rows[:, 0] += self.level
        return rows.scatter_(1, labels.unsqueeze(1), 0.9)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, 4096, (1536,))]


def get_init_inputs() -> list[int]:
    return [4096]
