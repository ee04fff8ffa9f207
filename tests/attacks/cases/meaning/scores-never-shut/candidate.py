"""A softmax."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, scores):
        return torch.softmax(scores, dim=-1)
