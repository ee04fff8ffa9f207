"""Directions of rows; one without a direction gets that of the diagonal."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        diagonal = torch.full_like(x, x.shape[-1] ** -0.5)
        return torch.where(norm > 0, x / norm.clamp(min=1e-12), diagonal)


def get_inputs():
    return [torch.randn(512, 128)]


def get_init_inputs():
    return []
