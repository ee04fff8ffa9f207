"""Something is always kept."""

import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, guess, target, keep):
        return (F.smooth_l1_loss(guess, target, reduction="none") * keep).sum() / keep.sum()
