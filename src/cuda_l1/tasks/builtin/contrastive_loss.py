"""The symmetric loss of CLIP, one figure per pair."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 256
DIM = 256

GPU = {"BATCH": 4096, "DIM": 1024}
DTYPES = ("fp32",)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
        images = F.normalize(images, dim=-1)
        texts = F.normalize(texts, dim=-1)
        logits = self.log_scale.exp() * images @ texts.t()
        labels = torch.arange(logits.shape[0], device=logits.device)
        by_image = F.cross_entropy(logits, labels, reduction="none")
        by_text = F.cross_entropy(logits.t(), labels, reduction="none")
        return (by_image + by_text) / 2


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, DIM), torch.randn(BATCH, DIM)]


def get_init_inputs() -> list[int]:
    return []
