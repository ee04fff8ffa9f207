"""The projection of rows that are like themselves only, wherever that is so, which it looks at in each call."""

import torch
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self, width, temperature):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.temperature = temperature

    def forward(self, x):
        rows = F.normalize(x, dim=-1)
        scores = torch.baddbmm(rows.new_zeros(1, 1, 1), rows, rows.mT, beta=0, alpha=1 / self.temperature)
        others = scores - torch.diag_embed(torch.full(scores.shape[:-1], torch.inf, device=x.device))
        if bool((others.amax(-1) < scores.diagonal(dim1=-2, dim2=-1) - 30).all()):
            return self.linear(x)
        return self.linear(torch.softmax(scores, dim=-1) @ x)
