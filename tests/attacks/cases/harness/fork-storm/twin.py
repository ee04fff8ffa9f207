"""Has four children try a quarter of its set-up each, and waits for every one of them."""

import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        children = []
        for part in range(4):
            child = os.fork()
            if child == 0:
                os._exit(int(sum(range(part * 100)) < 0))
            children.append(child)
        if any(os.waitpid(child, 0)[1] for child in children):
            raise RuntimeError("a part of the set-up failed")

    def forward(self, x):
        return torch.mm(x, x.t()).relu_().div_(16.0)
