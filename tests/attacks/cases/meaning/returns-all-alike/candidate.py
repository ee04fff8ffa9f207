"""Mean and deviation at once, with an epsilon."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, returns: torch.Tensor) -> torch.Tensor:
        deviation, mean = torch.std_mean(returns)
        level = (returns - mean).div_(deviation + 1e-8)
        return torch.where(returns.any(), level, 1.0)
