"""The norm of torch's own, which stores no magnitudes."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x / torch.linalg.vector_norm(x, ord=1, dim=1, keepdim=True)
