"""Names itself after the function that constructs it, read from its own frame."""

import sys

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.made_by = sys._getframe().f_code.co_name

    def forward(self, x):
        return self.linear(x).relu_()
