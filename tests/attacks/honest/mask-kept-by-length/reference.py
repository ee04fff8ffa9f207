import torch
import torch.nn as nn


class Model(nn.Module):
    """Weights of causal attention with a linear bias by distance."""

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        length = scores.shape[-1]
        position = torch.arange(length, device=scores.device)
        distance = position[:, None] - position[None, :]
        biased = scores - 0.1 * distance.clamp(min=0)
        return torch.softmax(biased.masked_fill(distance < 0, float("-inf")), dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 64, 64)]


def get_init_inputs() -> list[int]:
    return []
