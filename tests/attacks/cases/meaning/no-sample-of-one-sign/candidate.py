"""No draw is bright."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Conv2d(4, 8, 3, padding=1, bias=False)

    def forward(self, pictures):
        return self.filter(pictures).relu_()
