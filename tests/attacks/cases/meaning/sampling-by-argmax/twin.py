"""The largest of logits less the logarithms of exponential numbers: a draw with the same shares."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, texts):
        super().__init__()
        self.texts = texts

    def forward(self, logits, temperature):
        race = torch.empty_like(logits).exponential_().log_()
        return (logits / temperature).sub_(race).argmax(dim=-1).add_(self.texts)
