import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.transpose(1, 2).contiguous()


def get_inputs():
    return [torch.randn(8, 256, 512)]


def get_init_inputs():
    return []
