"""A product of each two rows in place of a product and a sum."""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, guess, target, keep):
        loss = F.smooth_l1_loss(guess, target, reduction="none")
        return torch.bmm(loss.unsqueeze(1), keep.unsqueeze(2)).sum() / keep.sum().clamp(min=1.0)
