"""Returns a list in place of the pair."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> list:
        return [x.clone().tanh_(), None]
