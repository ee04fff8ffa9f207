import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.silu(x) * y + torch.tanh(y)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(1024, 1000), torch.randn(1024, 1000)]


def get_init_inputs() -> list[int]:
    return []
