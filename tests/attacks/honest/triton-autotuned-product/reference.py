import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, size: int, wide: int) -> None:
        super().__init__()
        self.fc = nn.Linear(size, wide)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.fc(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(512, 384)]


def get_init_inputs() -> list[int]:
    return [384, 640]
