"""Two layers, and a factor that is another Python number in each draw."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(512, 1024)
        self.down = nn.Linear(1024, 512)

    def forward(self, x, scale: int):
        return self.down(torch.relu(self.up(x))) * scale


def get_inputs():
    return [torch.randn(128, 512), int(torch.randint(1, 1000, ()))]


def get_init_inputs():
    return []
