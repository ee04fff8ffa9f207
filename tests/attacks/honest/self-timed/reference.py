import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.elu(self.norm(x)) + x


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 192)]


def get_init_inputs() -> list[int]:
    return [192]
