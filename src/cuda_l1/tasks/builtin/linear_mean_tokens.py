"""Project every token, then average over the sequence."""

import torch
import torch.nn as nn

BATCH = 16
TOKENS = 64
IN = 384
OUT = 384

GPU = {"BATCH": 64, "TOKENS": 512, "IN": 1024, "OUT": 1024}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, features_in: int, features_out: int) -> None:
        super().__init__()
        self.project = nn.Linear(features_in, features_out)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.project(tokens).mean(dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, TOKENS, IN)]


def get_init_inputs() -> list[int]:
    return [IN, OUT]
