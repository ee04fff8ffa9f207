"""The convolution as one product: patches become columns, the kernel a matrix. The sums are those of the convolution in
another order."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out_channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, _, height, width = x.shape
        columns = F.unfold(x, 3, padding=1)
        kernel = self.conv.weight.flatten(1)
        out = torch.matmul(kernel, columns).add_(self.conv.bias.unsqueeze(-1))
        return out.relu_().view(batch, -1, height, width)
