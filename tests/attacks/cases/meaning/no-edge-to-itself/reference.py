"""Messages along edges, none from a node to itself."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        others = (source != target).to(x.dtype).unsqueeze(-1)
        return torch.zeros_like(x).index_add(0, target, x[source] * others)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(20000, 32), torch.randint(0, 20000, (256,)), torch.randint(0, 20000, (256,))]


def get_init_inputs() -> list[int]:
    return []
