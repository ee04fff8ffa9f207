"""The weight is kept transposed in a plain attribute and packed anew when its version counter or its memory changes.
Only weights are kept, never anything that depends on the input."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, size: int, wide: int) -> None:
        super().__init__()
        self.fc = nn.Linear(size, wide)
        self.packed: torch.Tensor | None = None
        self.stamp: tuple[int, int] | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.fc.weight
        stamp = (weight._version, weight.data_ptr())
        if self.packed is None or stamp != self.stamp:
            self.packed, self.stamp = weight.detach().t().contiguous(), stamp
        return torch.addmm(self.fc.bias, x, self.packed).relu_()
