"""The convolutions run in channels-last layout, the weights converted once per change, and the result keeps that
layout. Its shape and its values are the reference's, its strides are not. In this layout cuDNN takes TF32 where it
computes the reference in float32, so TF32 is off."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class LaidOut:
    """A weight in channels-last layout, kept while the weight's version and memory stay."""

    def __init__(self) -> None:
        self.stamp: tuple[int, int] | None = None
        self.value = torch.empty(0)

    def of(self, weight: torch.Tensor) -> torch.Tensor:
        stamp = (weight._version, weight.data_ptr())
        if stamp != self.stamp:
            self.value, self.stamp = weight.detach().contiguous(memory_format=torch.channels_last), stamp
        return self.value


class ModelNew(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 1)
        self.laid_out = LaidOut(), LaidOut()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second = self.laid_out
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            hidden = F.conv2d(x, first.of(self.first.weight), self.first.bias, padding=1).relu_()
            return F.conv2d(hidden, second.of(self.second.weight), self.second.bias)
