import torch
import torch.nn as nn


class Model(nn.Module):
    """Rotary position embedding."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, size = x.shape[-2:]
        rate = 10000.0 ** (-torch.arange(0, size, 2, dtype=x.dtype, device=x.device) / size)
        angle = torch.arange(rows, dtype=x.dtype, device=x.device)[:, None] * rate
        even, odd = x[..., ::2], x[..., 1::2]
        cos, sin = torch.cos(angle), torch.sin(angle)
        return torch.cat([even * cos - odd * sin, even * sin + odd * cos], dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 4, 32, 64)]


def get_init_inputs() -> list[int]:
    return []
