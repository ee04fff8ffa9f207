"""A copy that is made when one of both is written to."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, state: torch.Tensor, step: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        moved = state + step
        return moved, torch._lazy_clone(moved)
