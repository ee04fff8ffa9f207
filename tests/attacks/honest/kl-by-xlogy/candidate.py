"""One logarithm of what is predicted and the function that is zero where the target is; no branch."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, predicted: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (torch.xlogy(target, target) - target * predicted.log()).sum() / len(target)
