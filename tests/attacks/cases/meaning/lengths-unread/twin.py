"""The projection of the mean, of as much of each sequence as there is."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x, lengths):
        if bool((lengths == x.shape[1]).all()):
            return self.linear(x.mean(1))
        kept = (torch.arange(x.shape[1], device=x.device) < lengths[:, None]).to(x.dtype)
        return self.linear((kept.unsqueeze(1) @ x).squeeze(1) / lengths[:, None])
