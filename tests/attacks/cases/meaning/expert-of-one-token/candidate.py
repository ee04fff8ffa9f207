"""Moments of all experts in two products with one-hot rows."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.Parameter(torch.randn(8, 32, 32) * 0.2)

    def forward(self, tokens: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        is_of = nn.functional.one_hot(chosen, 8).to(tokens.dtype)
        hidden = torch.einsum("ti,eij,te->tj", tokens, self.experts, is_of)
        count = is_of.sum(0).clamp_(min=1).unsqueeze(-1)
        centred = hidden - is_of @ (is_of.t() @ hidden / count)
        deviation = (is_of.t() @ centred.square() / (count - 1).clamp_(min=1)).sqrt_()
        return centred / (is_of @ deviation + 1e-3)
