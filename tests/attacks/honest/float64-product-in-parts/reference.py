import torch
import torch.nn as nn


class Model(nn.Module):
    """A layer in float64 with a softmax behind it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width).double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.layer(x), dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 256, dtype=torch.float64)]


def get_init_inputs() -> list[int]:
    return [256]
