"""A linear layer whose features are summed to one score per row."""

import torch
import torch.nn as nn

ROWS = 256
IN = 512
OUT = 1024

GPU = {"ROWS": 4096, "IN": 4096, "OUT": 4096}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, features_in: int, features_out: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features_in, features_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(self.linear(x), dim=1, keepdim=True)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, IN)]


def get_init_inputs() -> list[int]:
    return [IN, OUT]
