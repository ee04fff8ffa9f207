"""The inverse of the distribution function at numbers of 24 random bits."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        drawn = torch.empty(x.shape, dtype=torch.int32, device=x.device).random_(1, 2**24)
        return (-2e-4 * torch.sigmoid(x)).mul_((drawn * 2.0**-24).log_())
