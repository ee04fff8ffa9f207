"""Cross entropy per token with label smoothing, as when a language model is scored."""

import torch
import torch.nn as nn
import torch.nn.functional as F

TOKENS = 256
VOCABULARY = 4096
DTYPE = torch.float32

GPU = {"TOKENS": 4096, "VOCABULARY": 32000}
DTYPES = ("fp32", "bf16")


class Model(nn.Module):
    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(logits, targets, reduction="none", label_smoothing=0.1)


def get_inputs() -> list[torch.Tensor]:
    return [2.0 * torch.randn(TOKENS, VOCABULARY, dtype=DTYPE), torch.randint(0, VOCABULARY, (TOKENS,))]


def get_init_inputs() -> list[int]:
    return []
