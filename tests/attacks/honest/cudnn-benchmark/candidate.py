"""cuDNN is told to time its algorithms in the first call of each shape and keep the fastest. The switch decides about
algorithms, not about precision, and holds in this process alone."""

import torch
import torch.nn as nn

torch.backends.cudnn.benchmark = True


class ModelNew(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x).relu_()
