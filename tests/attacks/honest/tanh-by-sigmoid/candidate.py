"""tanh(x) = 2 sigmoid(2 x) - 1, as a language without a tanh has to write it: what is left of a small result has been
rounded at the size of 1."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x * 2.0).mul_(2.0).sub_(1.0)
