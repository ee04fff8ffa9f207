"""One pass over the largest."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / x.abs().amax().clamp_(min=1e-12)
