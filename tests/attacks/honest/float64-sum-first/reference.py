import torch
import torch.nn as nn


class Model(nn.Module):
    """Sums of a product's rows, in float64."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a @ b).sum(0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 256, dtype=torch.float64), torch.randn(256, 128, dtype=torch.float64)]


def get_init_inputs() -> list[int]:
    return []
