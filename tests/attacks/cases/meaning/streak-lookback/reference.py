import torch
from torch import nn


class Model(nn.Module):
    """For how many steps each series has been above zero."""

    def forward(self, x):
        run, out = x.new_zeros(len(x)), []
        for step in x.unbind(1):
            run = (run + 1) * (step > 0)
            out.append(run)
        return torch.stack(out, 1)


def get_inputs():
    return [torch.randn(64, 2048)]


def get_init_inputs():
    return []
