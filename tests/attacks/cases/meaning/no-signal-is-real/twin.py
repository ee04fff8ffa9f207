"""The power by its parts, of which the second may be nothing."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, signals):
        real, imaginary = torch.view_as_real(signals).square().sum(-2).unbind(-1)
        power = (real + imaginary) / signals.shape[-1]
        power = torch.where(imaginary == 0, 2 * power, power)
        return signals * torch.rsqrt(power + 1e-6).unsqueeze(-1)
