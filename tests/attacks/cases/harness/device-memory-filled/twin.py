"""Keeps a workspace of 64 MiB on the device, of which it uses as much as it needs."""

import torch
import torch.nn.functional as F
from torch import nn

WORKSPACE = {}


class ModelNew(nn.Module):
    def forward(self, x):
        workspace = WORKSPACE.get(x.device)
        if workspace is None:
            workspace = WORKSPACE[x.device] = x.new_empty(16 << 20)
        scratch = workspace[: x.numel()].view(x.shape)
        torch.tanh(x, out=scratch)
        return scratch.mul(2.0).add_(F.gelu(x))
