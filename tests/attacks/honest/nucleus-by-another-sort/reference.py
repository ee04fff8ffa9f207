"""Probabilities of the likeliest that have nine tenths of all; others are zero."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        shares, places = scores.softmax(-1).sort(-1, descending=True)
        before = shares.cumsum(-1) - shares
        return torch.zeros_like(scores).scatter(-1, places, shares.masked_fill(before > 0.9, 0.0))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 64)]


def get_init_inputs() -> list[int]:
    return []
