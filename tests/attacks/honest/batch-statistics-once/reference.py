import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(128, 96) + 0.3]


def get_init_inputs() -> list[int]:
    return [96]
