"""The mean of the features of each class; zero for a class without any."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        hot = torch.nn.functional.one_hot(labels, self.classes).to(x.dtype)
        return hot.t() @ x / hot.sum(0).clamp(min=1).unsqueeze(-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 2048, 64).flatten(0, 1), torch.randint(0, 64, (8192,))]


def get_init_inputs() -> list[int]:
    return [64]
