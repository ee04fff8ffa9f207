"""The scale goes into the product."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(256, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = 1 / (1 + x.max())
        return torch.addmm(self.linear.bias * scale, x * scale, self.linear.weight.t())
