import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.mish(x) * torch.sigmoid(y)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(128, 128), torch.randn(128, 128)]


def get_init_inputs() -> list[int]:
    return []
