"""Mask and distance bias are one table to add, memoised by length, dtype and device. Nothing of an input's content is
kept."""

import functools

import torch
import torch.nn as nn


@functools.lru_cache(maxsize=8)
def bias(length: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    position = torch.arange(length, device=device)
    distance = position[:, None] - position[None, :]
    return (distance * -0.1).to(dtype).masked_fill_(distance < 0, float("-inf"))


class ModelNew(nn.Module):
    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return torch.softmax(scores + bias(scores.shape[-1], scores.dtype, scores.device), dim=-1)
