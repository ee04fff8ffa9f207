"""What is zero adds nothing; it only has to be counted."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=1) / torch.count_nonzero(x, dim=1).clamp_(min=1)
