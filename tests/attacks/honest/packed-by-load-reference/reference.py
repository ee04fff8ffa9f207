import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.query(x), self.key(x), self.value(x)
        return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, dim=-1) @ v


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 32, 64)]


def get_init_inputs() -> list[int]:
    return [64]
