"""Weight and bias live under other names, the weight transposed, as a product from the right wants it. Their values
are those that the reference draws, in the same order."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, size: int, wide: int) -> None:
        super().__init__()
        layer = nn.Linear(size, wide)
        self.w_t = nn.Parameter(layer.weight.detach().t().contiguous())
        self.shift = nn.Parameter(layer.bias.detach().clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.shift, x, self.w_t).relu_()
