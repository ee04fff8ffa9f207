"""Every expert on every token, mixed by the two largest gates."""

import torch
import torch.nn as nn
import torch.nn.functional as F

TOKENS = 64
DIM = 128
HIDDEN = 256
EXPERTS = 4

GPU = {"TOKENS": 1024, "DIM": 512, "HIDDEN": 1024, "EXPERTS": 8}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, dim: int, hidden: int, experts: int) -> None:
        super().__init__()
        self.router = nn.Linear(dim, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, dim, hidden) / dim**0.5)
        self.down = nn.Parameter(torch.randn(experts, hidden, dim) / hidden**0.5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        weights, chosen = torch.topk(self.router(tokens), 2, dim=-1)
        gates = torch.zeros(tokens.shape[0], self.up.shape[0], dtype=tokens.dtype, device=tokens.device)
        gates = gates.scatter(1, chosen, F.softmax(weights, dim=-1))
        hidden = F.relu(torch.einsum("td,edh->teh", tokens, self.up))
        outputs = torch.einsum("teh,ehd->ted", hidden, self.down)
        return (outputs * gates.unsqueeze(-1)).sum(dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(TOKENS, DIM)]


def get_init_inputs() -> list[int]:
    return [DIM, HIDDEN, EXPERTS]
