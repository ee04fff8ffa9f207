from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Statistics:
    minimum: torch.Tensor
    maximum: torch.Tensor


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.seen = Statistics(torch.zeros(width), torch.zeros(width))

    def forward(self, x):
        low, high = torch.aminmax(x, dim=0)
        self.seen = Statistics(
            torch.minimum(self.seen.minimum.to(x.device), low), torch.maximum(self.seen.maximum.to(x.device), high)
        )
        return self.linear(x)
