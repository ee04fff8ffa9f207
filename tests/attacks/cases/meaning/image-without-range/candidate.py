"""There always is one."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        least, most = torch.aminmax(x)
        return (x - least).div_(most - least)
