"""Each step is one product that adds, and a rectification in place; the first needs no product."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.recurrent = nn.Parameter(torch.eye(width))

    def forward(self, x):
        state = torch.relu(x[0])
        for step in x[1:]:
            state = torch.addmm(step, state, self.recurrent).relu_()
        return state
