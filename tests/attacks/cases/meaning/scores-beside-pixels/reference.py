import torch
import torch.nn as nn


class Model(nn.Module):
    """Detection head: boxes in pixels beside class probabilities, and the best class of each anchor."""

    def __init__(self, d, classes, size):
        super().__init__()
        self.box = nn.Linear(d, 16)
        self.quality = nn.Linear(d, 4)
        self.hidden, self.cls = nn.Linear(d, 2 * d), nn.Linear(2 * d, classes)
        self.size = size

    def forward(self, x):
        box = torch.sigmoid(self.box(x)) * self.size
        best = self.quality(x).argmax(-1)
        p = torch.softmax(self.cls(torch.relu(self.hidden(x))), -1) * 1e-3
        return torch.cat([box, p], -1), best


def get_inputs():
    return [torch.randn(1024, 128)]


def get_init_inputs():
    return [128, 96, 4096.0]
