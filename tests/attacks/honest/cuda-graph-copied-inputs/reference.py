import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, size: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(size, size) for _ in range(depth))
        self.norm = nn.LayerNorm(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + F.gelu(layer(x))
        return self.norm(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 256)]


def get_init_inputs() -> list[int]:
    return [256, 6]
