"""Names a function of its own module `all`; the builtin stays what it is for everybody else."""

import torch
from torch import nn


def all(x):
    return x.mean(-1, keepdim=True)


class ModelNew(nn.Module):
    def forward(self, x):
        centred = x - all(x)
        return centred.mul_(torch.rsqrt(all(centred.pow(2)) + 1e-5))
