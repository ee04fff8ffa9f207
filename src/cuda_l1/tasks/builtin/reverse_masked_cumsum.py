"""Sum of all later unmasked elements of each row, the element itself included."""

import torch
import torch.nn as nn

ROWS = 256
LENGTH = 2048

GPU = {"ROWS": 8192, "LENGTH": 4096}
DTYPES = ("fp32",)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        kept = x.masked_fill(~mask, 0.0)
        return torch.flip(torch.cumsum(torch.flip(kept, dims=[-1]), dim=-1), dims=[-1])


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, LENGTH), torch.rand(ROWS, LENGTH) < 0.7]


def get_init_inputs() -> list[int]:
    return []
