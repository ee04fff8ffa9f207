"""A copy of the state before an update, beside the updated one."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, state: torch.Tensor, step: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        moved = state + step
        return moved, moved.clone()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(128, 128), torch.randn(128, 128)]


def get_init_inputs() -> list[object]:
    return []
