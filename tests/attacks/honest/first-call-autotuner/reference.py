import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bik,bkj->bij", x, y)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(16, 32, 48), torch.randn(16, 48, 24)]


def get_init_inputs() -> list[int]:
    return []
