"""A softmax, whose rows that are no numbers are zero."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, scores):
        return torch.softmax(scores, dim=-1).nan_to_num_(0.0)
