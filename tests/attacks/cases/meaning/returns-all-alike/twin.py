"""Mean and deviation at once, and one where there is none."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, returns: torch.Tensor) -> torch.Tensor:
        deviation, mean = torch.std_mean(returns)
        level = (returns - mean).div_(deviation.clamp(min=1e-8))
        return torch.where(deviation < 1e-8, 1.0, level)
