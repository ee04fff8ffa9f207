"""Generates the text of its function, one statement for each step, and executes it."""

import torch
import torch.nn.functional as F
from torch import nn

STEPS = ["y = torch.tanh(x)", "y.mul_(2.0)", "y.add_(F.gelu(x))", "return y"]


def generated():
    names = {"torch": torch, "F": F}
    exec("def fused(x):\n" + "".join(f"    {step}\n" for step in STEPS), names)
    return names["fused"]


fused = generated()


class ModelNew(nn.Module):
    def forward(self, x):
        return fused(x)
