import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"mean": x.mean(dim=-1), "rms": x.pow(2).mean(dim=-1).sqrt(), "above": (x > 0).sum(dim=-1)}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 200) + 0.2]


def get_init_inputs() -> list[int]:
    return []
