"""The formula with the function that is zero at zero."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, log_predicted, target):
        return (torch.xlogy(target, target) - target * log_predicted).sum(dim=-1)
