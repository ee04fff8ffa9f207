import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.left = nn.Linear(size, size)
        self.right = nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.tanh(self.left(x)), torch.sigmoid(self.right(x))], dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 128)]


def get_init_inputs() -> list[int]:
    return [128]
