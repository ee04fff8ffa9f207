"""A convolution with kernel 1 as a convolution or as a product, chosen by CUDA events in the first call of each shape.
The product is in float32, cuDNN's convolution in TF32 as PyTorch ships it: processes may differ in class."""

import statistics

import torch
import torch.nn as nn
import torch.nn.functional as F

ROUNDS = 5


def as_convolution(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.conv2d(x, weight)


def as_product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    batch, _, height, width = x.shape
    return torch.matmul(weight.flatten(1), x.flatten(2)).view(batch, -1, height, width)


def milliseconds(way, x: torch.Tensor, weight: torch.Tensor) -> float:
    way(x, weight)
    times = []
    for _ in range(ROUNDS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        way(x, weight)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


class ModelNew(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, channels, 1, 1) / channels**0.5)
        self.chosen: dict[tuple[int, ...], object] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        way = self.chosen.get(x.shape)
        if way is None:
            ways = (as_convolution, as_product)
            way = min(ways, key=lambda way: milliseconds(way, x, self.weight))
            self.chosen[x.shape] = way
        return way(x, self.weight)
