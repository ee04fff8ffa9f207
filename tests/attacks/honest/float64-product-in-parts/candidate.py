"""The product in two parts of its sum, as a kernel with a tile of half the width computes it."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width).double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, half = self.layer.weight, self.layer.weight.shape[1] // 2
        first = torch.addmm(self.layer.bias, x[:, :half], weight[:, :half].t())
        return torch.softmax(torch.addmm(first, x[:, half:], weight[:, half:].t()), dim=-1)
