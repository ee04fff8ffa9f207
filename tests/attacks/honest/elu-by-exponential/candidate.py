"""ELU as its definition has it, exp(x) - 1: near zero the difference keeps few of float32's digits, none of which is
worth more than a rounding of an ordinary answer."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, x, torch.exp(x.clamp(max=0.0)) - 1.0)
