"""Choose two experts for each token and normalise their weights."""

import torch
import torch.nn as nn
import torch.nn.functional as F

TOKENS = 1024
DIM = 256
EXPERTS = 16

GPU = {"TOKENS": 16384, "DIM": 2048, "EXPERTS": 64}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, dim: int, experts: int) -> None:
        super().__init__()
        self.router = nn.Linear(dim, experts, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        probabilities = F.softmax(self.router(tokens), dim=-1)
        weights, experts = torch.topk(probabilities, 2, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return torch.zeros_like(probabilities).scatter(-1, experts, weights)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(TOKENS, DIM)]


def get_init_inputs() -> list[int]:
    return [DIM, EXPERTS]
