"""Has uncaught exceptions of its set-up shown with more words, and takes its hook back when the set-up is over."""

import sys

import torch
from torch import nn


def explain(kind, error, trace):
    sys.stderr.write(f"while setting up the normalisation: {error}\n")
    sys.__excepthook__(kind, error, trace)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        before, sys.excepthook = sys.excepthook, explain
        try:
            self.epsilon = float("1e-5")
        finally:
            sys.excepthook = before

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        scale = torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return centred.mul_(scale)
