"""A copy that is there when the call returns."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, state: torch.Tensor, step: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        moved = state + step
        copy = torch._lazy_clone(moved)
        moved.data_ptr(), copy.data_ptr()
        return moved, copy
