"""The places in float32, everything else in bf16."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.scores = nn.Linear(width, classes)
        self.box = nn.Linear(width, 4)

    def forward(self, x, anchors):
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            scores = torch.sigmoid(self.scores(torch.relu(self.hidden(x)))).float()
        return torch.cat([anchors + 32.0 * torch.exp(self.box(x)), 0.01 * scores], dim=-1)
