import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 16, 16, 16)]


def get_init_inputs() -> list[int]:
    return [16]
