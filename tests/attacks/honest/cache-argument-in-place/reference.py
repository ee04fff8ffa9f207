import torch
import torch.nn as nn

POSITION = 40


class Model(nn.Module):
    """One step of decoding: the new key goes into the cache, then the query looks at all keys so far."""

    def forward(self, query: torch.Tensor, key: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        cache[:, POSITION] = key
        scores = torch.einsum("bd,bld->bl", query, cache[:, : POSITION + 1])
        return torch.softmax(scores / query.shape[-1] ** 0.5, dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8, 32), torch.randn(8, 32), torch.randn(8, 64, 32)]


def get_init_inputs() -> list[int]:
    return []
