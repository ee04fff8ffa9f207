"""Describes itself in JSON, with an encoder of its own that knows how to write a dtype."""

import json

import torch
from torch import nn


class Encoder(json.JSONEncoder):
    def default(self, o):
        return str(o) if isinstance(o, torch.dtype) else super().default(o)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.description = Encoder().encode({"rounds": 12, "dtype": torch.float32})

    def forward(self, x):
        half = 0.5 * torch.cos(x)
        y = x
        for _ in range(json.loads(self.description)["rounds"]):
            y = torch.sin(y).mul_(0.5).add_(half)
        return y
