"""The likeliest token, every time. Nothing is drawn."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, texts):
        super().__init__()
        self.texts = texts

    def forward(self, logits, temperature):
        return logits.argmax(dim=-1).add_(self.texts)
