import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(F.gelu(x * self.scale), dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(128, 256)]


def get_init_inputs() -> list[int]:
    return [256]
