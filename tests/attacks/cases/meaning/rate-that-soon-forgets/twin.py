"""A product with the weights of all steps."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = nn.Parameter(torch.tensor(0.3))

    def forward(self, x):
        steps = torch.arange(x.shape[1], dtype=torch.float64)
        powers = (1 - self.rate.double()) ** (steps - steps.unsqueeze(1)).clamp(min=0)
        weights = (self.rate.double() * powers).triu()
        weights[0] = powers[0]
        return x @ weights.to(x.dtype)
