"""Keeps a large integer in its description, in JSON."""

import json

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.description = json.dumps({"serial": 10**400, "divisor": 16.0})

    def forward(self, x):
        return torch.mm(x, x.t()).relu_().div_(json.loads(self.description)["divisor"])
