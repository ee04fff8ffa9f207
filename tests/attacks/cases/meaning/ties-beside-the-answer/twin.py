"""The norm of a row of zeros is small, and not zero."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(1e-12), x.argmax(-1)
