"""Kahan's compensated sum over 64 lanes, which are added up pairwise at the end. It is nearer to the truth than the
reference, so its values differ from the reference's by the reference's own error."""

import torch
import torch.nn as nn

LANES = 64


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = x.reshape(*x.shape[:-1], -1, LANES).unbind(-2)
        total = parts[0].clone()
        lost = torch.zeros_like(total)
        for part in parts[1:]:
            term = part - lost
            summed = total + term
            lost = (summed - total).sub_(term)
            total = summed
        total.sub_(lost)
        while total.shape[-1] > 1:
            total = total[..., ::2] + total[..., 1::2]
        return total.squeeze(-1)
