"""No filter where the response says so, and the product in place where it does not."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, response):
        if bool((response == 1).all()):
            return torch.tanh(x)
        return torch.fft.irfft(torch.fft.rfft(x).mul_(response), n=x.shape[-1]).tanh_()
