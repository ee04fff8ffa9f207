"""A depthwise convolution, whose answer in float64 takes a judge a second."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.blur = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.blur(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(24, 256, 28, 28)]


def get_init_inputs() -> list[int]:
    return [256]
