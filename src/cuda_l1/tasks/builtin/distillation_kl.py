"""Divergence of a student from its teacher at a temperature, one figure per token."""

import torch
import torch.nn as nn
import torch.nn.functional as F

TOKENS = 256
VOCABULARY = 2048

GPU = {"TOKENS": 4096, "VOCABULARY": 16384}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self, temperature: int) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        student = F.log_softmax(student / self.temperature, dim=-1)
        teacher = F.log_softmax(teacher / self.temperature, dim=-1)
        divergence = F.kl_div(student, teacher, reduction="none", log_target=True).sum(dim=-1)
        return divergence * self.temperature**2


def get_inputs() -> list[torch.Tensor]:
    return [2.0 * torch.randn(TOKENS, VOCABULARY), 2.0 * torch.randn(TOKENS, VOCABULARY)]


def get_init_inputs() -> list[int]:
    return [2]
