"""Half the operations of elimination with pivots, for matrices that are positive definite."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, gram: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.cholesky_solve(targets, torch.linalg.cholesky(gram))
