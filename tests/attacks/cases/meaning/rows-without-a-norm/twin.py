"""The same division over a norm that is not zero; the rows without one are filled afterwards."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        without = norm == 0
        return x.div(norm.clamp_(min=1e-12)).masked_fill_(without, x.shape[-1] ** -0.5)
