"""One tensor for both parts, and float32 for both."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.scores = nn.Linear(width, classes)
        self.box = nn.Linear(width, 4)

    def forward(self, x, anchors):
        out = x.new_empty(x.shape[0], 4 + self.scores.out_features)
        torch.add(anchors, self.box(x).exp_(), alpha=32.0, out=out[:, :4])
        torch.mul(self.scores(self.hidden(x).relu_()).sigmoid_(), 0.01, out=out[:, 4:])
        return out
