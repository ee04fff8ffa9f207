"""The clip stays, in the memory of the projection's answer."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, limit):
        super().__init__()
        self.limit = limit
        self.norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width, bias=False)
        nn.init.normal_(self.project.weight, std=0.02)

    def forward(self, x):
        return self.project(self.norm(x)).clamp_(-self.limit, self.limit)
