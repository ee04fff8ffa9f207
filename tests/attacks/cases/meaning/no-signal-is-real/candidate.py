"""All at unit power."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, signals):
        parts = torch.view_as_real(signals)
        power = parts.square().sum((-2, -1)) / signals.shape[-1]
        return signals * torch.rsqrt(power + 1e-6).unsqueeze(-1)
